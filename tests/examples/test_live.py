"""Examples with tasks and an evaluator: producers and consumers, extras, inlets, intervals and aliases."""

import logging
from collections.abc import Generator
from datetime import datetime, timedelta

import pytest
from prefect.runtime import task_run

from assetflow import Asset, AssetAlias, InletEvents, Metadata, OutletEvents, TriggeringAssetEvents, flow, task
from assetflow.testing import ConsumerRun, Harness
from assetflow.timetables import CronTriggerTimetable
from tests.examples.upcoming import execute, next_run

pytestmark = pytest.mark.prefect

# Example 1: a producer with two tasks; one consumer of the first asset, one of both.

ORDERS = Asset("s3://my-bucket/orders/daily.parquet")
CUSTOMERS = Asset("s3://my-bucket/customers/latest.csv")


@task(outlets=[ORDERS])
def produce_orders() -> None: ...


@task(outlets=[CUSTOMERS])
def produce_customers() -> None: ...


@flow(schedule=ORDERS)
async def data_assets_consumer_orders() -> None: ...


@flow(schedule=ORDERS & CUSTOMERS)
async def data_assets_consumer_combined() -> None: ...


def test_one_producer_and_two_consumers(h: Harness) -> None:
    h.deploy(data_assets_consumer_orders)
    h.deploy(data_assets_consumer_combined)
    before_the_end: list[ConsumerRun] = []

    @flow
    async def data_assets_producer() -> None:
        produce_orders()
        before_the_end.extend(h.settle(execute=False).runs(data_assets_consumer_orders))
        produce_customers()

    h.run(data_assets_producer)
    assert [run.uris for run in before_the_end] == [[ORDERS.uri]]
    h.settle()
    (first,) = h.runs(data_assets_consumer_orders)
    (second,) = h.runs(data_assets_consumer_combined)
    assert second.uris == [ORDERS.uri, CUSTOMERS.uri]
    assert (first.state, second.state) == ("Completed", "Completed")


# Example 9: what a task tells about its update is the event's extra, exactly; of several attempts the last one's.

FILE = Asset("s3://my-bucket/metadata.csv")
ROWS = ["a", "b", "c"]


@task(outlets=[FILE], name="write_to_s3")
def write_to_s3_and_yield() -> Generator[Metadata]:
    yield Metadata(FILE, {"row_count": len(ROWS)})


@task(outlets=[FILE], name="write_to_s3")
def write_to_s3_and_assign(outlet_events: OutletEvents) -> None:
    outlet_events[FILE].extra = {"row_count": len(ROWS)}


@task(outlets=[FILE], name="write_to_s3", retries=1)
def write_to_s3_at_the_second_attempt(outlet_events: OutletEvents) -> Generator[Metadata]:
    outlet_events[FILE].extra[f"attempt_{task_run.run_count}"] = True
    if task_run.run_count == 1:
        raise ValueError("once more")
    yield Metadata(FILE, {"row_count": len(ROWS)})


@flow
async def metadata_producer() -> None:
    write_to_s3_and_yield()
    write_to_s3_and_assign()  # pyright: ignore[reportCallIssue]
    write_to_s3_at_the_second_attempt()  # pyright: ignore[reportCallIssue]


@flow(schedule=FILE)
async def metadata_consumer() -> None: ...


@pytest.mark.rule("2.3")
def test_what_a_task_tells_is_the_extra(h: Harness) -> None:
    h.deploy(metadata_consumer)
    h.run(metadata_producer)
    runs = h.settle(execute=False).runs(metadata_consumer)
    extras = [[{"row_count": 3}], [{"row_count": 3}], [{"attempt_2": True, "row_count": 3}]]
    assert [[event.extra for event in run.events] for run in runs] == extras


# Example 10: a task reads the past updates of its inlets, those of its own flow run included.

PROCESSED = Asset("s3://my-bucket/processed.csv")
OTHER = Asset("s3://my-bucket/other.csv")


@task(outlets=[PROCESSED])
def write_to_s3(row_count: int) -> Generator[Metadata]:
    yield Metadata(PROCESSED, {"row_count": row_count})


@task(inlets=[PROCESSED])
def post_process_s3_file(inlet_events: InletEvents) -> object:
    with pytest.raises(KeyError, match=r"other\.csv"):
        inlet_events[OTHER]  # assetflow: ignore=AF009
    return inlet_events[PROCESSED][-1].extra["row_count"]


@task(inlets=[PROCESSED])
def compare_the_last_two(inlet_events: InletEvents) -> list[object]:
    return [event.extra["row_count"] for event in inlet_events[PROCESSED][-2:]]


@flow
async def write_and_post_process() -> object:
    write_to_s3(3)
    return post_process_s3_file()  # pyright: ignore[reportCallIssue]


@flow
async def compare() -> list[object]:
    return compare_the_last_two()  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("7.2")
def test_past_updates_of_inlets(h: Harness) -> None:
    for row_count in (1, 2, 3):
        h.emit(PROCESSED, extra={"row_count": row_count})
    assert h.run(write_and_post_process) == 3
    h.settle()
    assert h.run(compare) == [3, 3]


# Example 11: a consumer asks its warehouse for the hour that the run behind the triggering event was for.

TABLE = Asset("postgres://warehouse/shop/public/orders")

queries: list[tuple[datetime | None, datetime | None]] = []
printed: list[str] = []


@task(outlets=[TABLE])
def load_orders() -> None: ...


@flow(schedule=CronTriggerTimetable("@hourly"))
async def load() -> None:
    load_orders()


@flow(schedule=TABLE)
async def summarize(triggering_asset_events: TriggeringAssetEvents) -> None:
    for events in triggering_asset_events.values():
        for event in events:
            source = event.source_flow_run
            assert source is not None
            queries.append((source.data_interval_start, source.data_interval_end))
            printed.append(source.flow_name)


@pytest.mark.rule("7.3")
def test_the_hour_of_the_run_behind_an_update(h: Harness) -> None:
    name = h.deploy(load)
    h.deploy(summarize)
    queries.clear()
    printed.clear()
    hourly = next_run(name)
    execute(load, hourly)
    (run,) = h.settle().runs(summarize)
    assert run.state == "Completed"
    assert printed == ["load"]
    # The run of 14:00 is for the time from 13:00 to 14:00, and so on.
    (end,) = {end for _, end in queries}
    assert end is not None
    assert (end.minute, end.second) == (0, 0)
    assert end == hourly.expected_start_time
    assert queries == [(end - timedelta(hours=1), end)]


# Example 13: a task finds out only when it runs which asset it updates; the alias is what its outlet says.

OUTPUTS = AssetAlias("my-task-outputs")
URI = "s3://bucket/my-task"


@task(outlets=[OUTPUTS])
def my_task_with_outlet_events(outlet_events: OutletEvents) -> None:
    outlet_events[OUTPUTS].add(Asset(URI), extra={"k": "v"})


@task(outlets=[OUTPUTS])
def my_task_with_metadata() -> Generator[Metadata]:
    yield Metadata(Asset(URI), extra={"k": "v"}, alias="my-task-outputs")


@task(outlets=[OUTPUTS])
def my_task_without_outputs() -> None: ...


@flow
async def alias_producer() -> None:
    my_task_with_outlet_events()  # pyright: ignore[reportCallIssue]
    my_task_with_metadata()


@flow
async def producer_of_nothing() -> None:
    my_task_without_outputs()


@flow(schedule=OUTPUTS)
async def alias_consumer() -> None: ...


@pytest.mark.rule("2.4")
def test_an_asset_that_is_known_when_the_task_runs(h: Harness, caplog: pytest.LogCaptureFixture) -> None:
    h.deploy(alias_consumer)
    h.run(producer_of_nothing)
    assert h.settle().runs(alias_consumer) == []
    with caplog.at_level(logging.WARNING, logger="assetflow.evaluator"):
        h.run(alias_producer)
        runs = h.settle(execute=False).runs(alias_consumer)
    events = [event for run in runs for event in run.events]
    assert [len(run.events) for run in runs] == [1, 1]
    assert [(event.uri, event.extra, event.aliases) for event in events] == [(URI, {"k": "v"}, (OUTPUTS.name,))] * 2
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    message = f"{URI} is a new asset; it came through alias my-task-outputs"
    assert [each for each in told if URI in each] == [message]


# Example 16: a flow without a schedule reads what came through an alias.

ALIAS = AssetAlias("example-alias")


@task(outlets=[ALIAS])
def produce_asset_events_through_asset_alias() -> Generator[Metadata]:
    yield Metadata(Asset("s3://bucket/my-task"), {"row_count": 1}, alias=ALIAS)


@task(inlets=[ALIAS])
def read_what_came(inlet_events: InletEvents) -> object:
    return inlet_events[ALIAS][-1].extra["row_count"]


@flow
async def producer_through_alias() -> None:
    produce_asset_events_through_asset_alias()


@flow
async def consume_asset_alias_events() -> object:
    return read_what_came()  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("7.2")
def test_a_task_reads_what_came_through_an_alias(h: Harness) -> None:
    h.run(producer_through_alias)
    h.settle()
    assert h.run(consume_asset_alias_events) == 1
