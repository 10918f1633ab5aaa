"""`spark_task`: the session comes first, DataFrames become data, callers get something small."""

import inspect
import pickle
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect import flow
from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

from assetflow.authoring.asset_decorator import asset
from assetflow.authoring.metadata import Metadata
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.errors import InvalidFlow, OutletError, SparkSettingsConflict
from assetflow.spark.publish import publish
from assetflow.spark.reading import read
from assetflow.spark.task import spark_task
from assetflow.spark.watch import job_tag
from assetflow.spark.writes import Published, asset_path

pytestmark = [pytest.mark.spark, pytest.mark.prefect, pytest.mark.usefixtures("spark", "prefect_here")]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """What tasks record, instead of sending it to Prefect."""
    recordings: list[Recording] = []
    monkeypatch.setattr("assetflow.authoring.attempts.deliver", recordings.append)
    return recordings


@pytest.fixture(autouse=True)
def same_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_SPARK_MASTER", "local[2]")


@pytest.fixture
def customers(tmp_path: Path) -> Asset:
    return Asset(f"file://{tmp_path}/lake/customers")


def run(task: Any, *arguments: Any, **options: Any) -> Any:
    @flow(**options)
    def around() -> Any:
        return task(*arguments)

    return around()


def version_of(asset: Asset) -> str:
    path = asset_path(asset)
    assert path is not None
    return path.resolve().name


def task_run_of(event: AssetEvent) -> str:
    assert event.origin.task_run is not None
    return str(event.origin.task_run.id)


def test_a_returned_dataframe_becomes_the_data_of_the_outlet(orders: Asset, recorded: list[Recording]) -> None:
    @spark_task(outlets=orders)
    def produce(spark: Any, rows: int) -> Any:
        return spark.range(rows)

    published = run(produce, 4)
    assert isinstance(published, Published)
    assert pickle.loads(pickle.dumps(published)) == published
    assert read(orders).count() == 4
    (event,) = recorded[0].events
    assert dict(event.metrics) == published.metrics
    assert event.metrics["rows"] == 4
    assert version_of(orders).endswith(task_run_of(event))


def test_several_dataframes(orders: Asset, customers: Asset, recorded: list[Recording]) -> None:
    @spark_task(outlets=[orders, customers])
    def produce(spark: Any) -> Any:
        return {orders: spark.range(1), customers: spark.range(2)}

    published = run(produce)
    assert {asset: each.metrics["rows"] for asset, each in published.items()} == {orders: 1, customers: 2}
    assert {event.asset: event.metrics["rows"] for event in recorded[0].events} == {orders: 1, customers: 2}


@pytest.mark.parametrize("kind", ["plain", "generator", "coroutine", "async generator"])
async def test_every_kind_of_function(orders: Asset, recorded: list[Recording], kind: str) -> None:
    tags: list[set[str]] = []

    def plain(spark: Any) -> Any:
        tags.append(set(spark.sparkContext.getJobTags()))
        return spark.range(2)

    def generator(spark: Any) -> Generator[Any, Any, Any]:
        tags.append(set(spark.sparkContext.getJobTags()))
        yield Metadata(orders, {"said": True})
        return spark.range(2)

    async def coroutine(spark: Any) -> Any:
        tags.append(set(spark.sparkContext.getJobTags()))
        return spark.range(2)

    async def async_generator(spark: Any) -> AsyncGenerator[Any, None]:
        tags.append(set(spark.sparkContext.getJobTags()))
        publish(spark.range(2), orders)
        yield Metadata(orders, {"said": True})

    functions = {"plain": plain, "generator": generator, "coroutine": coroutine, "async generator": async_generator}
    produce: Any = spark_task(outlets=[orders])(functions[kind])

    @flow
    async def around() -> Any:
        done = produce()
        return await done if inspect.isawaitable(done) else done

    result = await around()
    (event,) = recorded[0].events
    assert result is None or result.asset == orders
    assert event.metrics["rows"] == 2
    assert event.extra == ({"said": True} if "generator" in kind else {})
    assert tags == [{job_tag(task_run_of(event))}]
    assert not set(read(orders).sparkSession.sparkContext.getJobTags())


def test_a_retry_after_a_publish_does_not_double(orders: Asset, recorded: list[Recording]) -> None:
    attempts: list[int] = []

    @spark_task(outlets=[orders], retries=2)
    def produce(spark: Any) -> None:
        publish(spark.range(5), orders, mode="append")
        attempts.append(1)
        if len(attempts) < 3:
            raise RuntimeError("broken after publishing")

    run(produce)
    run(produce)
    assert len(attempts) == 4
    assert read(orders).count() == 10
    assert [recording.events[0].metrics["rows"] for recording in recorded] == [5, 5]


def test_a_first_parameter_spark_makes_an_asset_a_spark_task(tmp_path: Path, recorded: list[Recording]) -> None:
    @asset(uri=f"file://{tmp_path}/numbers", spark={"conf": {"spark.sql.shuffle.partitions": "2"}})
    def numbers(spark: Any, rows: int = 5) -> Any:
        return spark.range(rows)

    numbers(rows=3)
    ((event,),) = [each.events for each in recorded]
    assert (event.uri, event.metrics["rows"]) == (f"file://{tmp_path}/numbers", 3)
    assert read(Asset(event.uri)).count() == 3


WRONG: dict[str, tuple[list[str], Callable[..., Any], str | None]] = {
    "no outlet": ([], lambda spark, _: spark.range(1), r"has no outlet.*Name one"),
    "two outlets": (["orders", "customers"], lambda spark, _: spark.range(1), r"Return {asset: DataFrame}"),
    "an alias": (["alias"], lambda spark, _: spark.range(1), "without its asset"),
    "several": (["orders"], lambda spark, _: [spark.range(1)], "several DataFrames"),
    "no outlet of it": (
        ["orders"],
        lambda spark, all_of: dict.fromkeys(all_of, spark.range(1)),
        "not one of its outlets",
    ),
    "published": (["orders"], lambda spark, all_of: publish(spark.range(1), all_of[1]), None),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_returned_has_to_fit_the_outlets(
    orders: Asset, customers: Asset, recorded: list[Recording], name: str
) -> None:
    outlets, returned, words = WRONG[name]
    known = {"orders": orders, "customers": customers, "alias": AssetAlias("some")}

    @spark_task(outlets=[known[each] for each in outlets])
    def produce(spark: Any) -> Any:
        return returned(spark, (orders, customers))

    with pytest.raises(OutletError, match=words):
        run(produce)
    assert recorded == []
    assert not [each for each in (orders, customers) if Path(str(asset_path(each))).exists()]


def test_no_place_for_the_session() -> None:
    with pytest.raises(InvalidFlow, match="first parameter"):

        @spark_task  # type: ignore[arg-type]
        def produce() -> None: ...


@pytest.mark.parametrize("runner", [ProcessPoolTaskRunner, ThreadPoolTaskRunner])
def test_a_process_pool_is_refused_in_classic_mode(monkeypatch: pytest.MonkeyPatch, runner: Any) -> None:
    """As a task finds it in a process of a pool; a real pool takes a minute."""

    @spark_task
    def produce(spark: Any) -> int:
        return spark.range(3).count()

    context = SimpleNamespace(detached=True, task_runner=runner())
    monkeypatch.setattr("assetflow.spark.task.FlowRunContext", SimpleNamespace(get=lambda: context))
    if runner is ThreadPoolTaskRunner:
        assert produce.fn() == 3
    else:
        with pytest.raises(SparkSettingsConflict, match="ThreadPoolTaskRunner"):
            produce.fn()


def test_rule_8_2_a_returned_frame_may_have_the_version_of_its_table(spark: Any, orders: Asset) -> None:  # noqa: ARG001
    @spark_task(outlets=[orders], data_version="table")
    def produce(spark: Any) -> Any:
        return spark.range(3)

    first, second = produce.fn(), produce.fn()
    assert first.data_versions.keys() == {None}
    assert first.data_versions != second.data_versions
    with pytest.raises(InvalidFlow, match="would be the version of every update"):
        spark_task(outlets=[orders], data_version="1")(lambda spark: spark)  # type: ignore[call-overload]
