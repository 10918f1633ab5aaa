from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID, uuid5

import pytest

from assetflow.core.partitions import FixedKeyMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import BY_DAY, HOURLY, ORDERS, ROLLED_UP, deploy, update

DAILY = Asset("s3://lake/daily", name="daily")
Evaluated = Callable[..., list[list[str | None]]]


def runs_end(ledger: Ledger, state: str = "Completed") -> list[str | None]:
    """Let the runs of the waiting decisions start and end; their keys."""
    keys: list[str | None] = []
    for record, _ in ledger.reader.decisions.waiting():
        run = uuid5(UUID(int=0), str(record.id))
        ledger.writer.decisions.launched(record.id, run, datetime.now(UTC))
        ledger.writer.decisions.ended(state, datetime.now(UTC), flow_run_id=run)
        keys.append(record.target_key)
    return keys


@pytest.fixture
def evaluated(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    """Let each wait of a backfill be the moment in which an evaluator runs; the keys that ran together, in turn."""

    def begin(state: str = "Completed", stop_after: int = 1_000) -> list[list[str | None]]:
        steps: list[list[str | None]] = []

        def wait(_: float) -> None:
            if len(steps) == stop_after:
                raise KeyboardInterrupt
            steps.append(runs_end(ledger, state))

        monkeypatch.setattr("assetflow.operations.backfill.sleep", wait)
        return steps

    return begin


def test_pending_partitions_say_what_came_and_what_is_missing(ledger: Ledger, call: Call) -> None:
    deploy(
        ledger,
        "report/shop",
        PartitionedAssetTimetable(assets=HOURLY & DAILY, partition_mapper_config={HOURLY: BY_DAY}),
    )
    for hour in range(3):
        update(ledger, HOURLY, hour, f"2026-01-01T{hour:02}:00:00")
    listed = call("partitions", "ls", "report", "--json").json
    (pending,) = listed["pending"]
    hourly, daily = pending["assets"]
    assert listed["totals"] == {"pending": 1, "done": 0, "running": 0, "failed": 0}
    assert pending["target_key"] == "2026-01-01"
    assert (len(hourly["received"]), hourly["missing"][0], len(hourly["missing"])) == (3, "2026-01-01T03:00:00", 21)
    assert (daily["received"], daily["needed"]) == ([], 1)
    told = call("partitions", "ls", "report").out
    assert "2026-01-01T03:00:00" in told
    assert "daily: nothing yet" in told


def test_gaps_are_counted_by_the_size_that_is_asked_for_and_end_with_0_when_there_are_none(
    ledger: Ledger, call: Call
) -> None:
    update(ledger, DAILY, 9, "2026-02-28")
    assert call("partitions", "gaps", "daily", "--from", "2026-02-28", "--to", "2026-02-28").code == 0
    assert call("partitions", "gaps", "daily", "--from", "2026-02", "--to", "2026-02", "--json").json["keys"] == 28
    month = call("partitions", "gaps", "daily", "--from", "2026", "--to", "2026", "--every", "month", "--json").json
    assert (month["keys"], len(month["missing"])) == (12, 12)


def test_a_backfill_runs_each_key_once_so_many_at_a_time(ledger: Ledger, call: Call, evaluated: Evaluated) -> None:
    deploy(ledger, "report/shop", ROLLED_UP)
    arguments = ("backfill", "report", "--from", "2026-01-01", "--to", "2026-01-05")
    steps = evaluated()
    first = call(*arguments, "--json").json
    again = call(*arguments, "--json").json
    assert [len(step) for step in steps] == [2, 2, 1]
    assert first["runs"] == {f"2026-01-0{day}": "Completed" for day in range(1, 6)}
    assert again == {**first, "runs": {}, "left_out": list(first["runs"])}
    assert len(ledger.reader.decisions.find()) == 5
    assert {decision.kind for decision in ledger.reader.decisions.find()} == {"backfill"}
    assert call(*arguments, "--again", "--concurrency", "5", "--json").code == 0
    assert len(ledger.reader.decisions.find()) == 10


def test_missing_only_leaves_out_what_has_run(ledger: Ledger, call: Call, evaluated: Evaluated) -> None:
    deploy(ledger, "report/shop", PartitionedAssetTimetable(assets=DAILY))
    for minute, state in ((1, "Completed"), (2, "Failed")):
        update(ledger, DAILY, minute, f"2026-01-0{minute}")
        runs_end(ledger, state)
    arguments = ("backfill", "report", "--from", "2026-01-01", "--to", "2026-01-03", "--missing-only")
    evaluated("Crashed")
    assert list(call(*arguments, "--dry-run", "--json").json["runs"]) == ["2026-01-02", "2026-01-03"]
    assert len(ledger.reader.decisions.find()) == 2, "a dry run makes nothing"
    assert call(*arguments).code == 1
    assert len(ledger.reader.decisions.find()) == 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("backfill", "plain", "--keys", "a"), "no partitions"),
        (("backfill", "fixed", "--from", "2026", "--to", "2026"), "--keys"),
        (("backfill", "report", "--from", "2026-02", "--to", "2026-01"), "before"),
        (("backfill", "report", "--from", "soon", "--to", "2026-01"), "is not a time"),
        (("backfill", "report", "--from", "2026-01"), "--to"),
        (("backfill", "report", "--keys", " "), "blank"),
        (("backfill", "report", "--keys", "a", "--from", "2026"), "cannot be given together"),
        (("partitions", "ls", "plain"), "queue ls"),
        (("partitions", "gaps", "orders", "--from", "2026", "--to", "2026"), "--every"),
        (("partitions", "gaps", "orders", "--from", "2026", "--to", "2026", "--every", "tide"), "tide"),
    ],
)
def test_bad_calls_say_what_to_do(ledger: Ledger, call: Call, arguments: tuple[str, ...], told: str) -> None:
    deploy(ledger, "plain/shop", ORDERS)
    deploy(ledger, "report/shop", ROLLED_UP)
    fixed = PartitionedAssetTimetable(assets=DAILY, default_partition_mapper=FixedKeyMapper("all"))
    deploy(ledger, "fixed/shop", fixed)
    answer = call(*arguments)
    assert answer.code == 2
    assert told in answer.err
