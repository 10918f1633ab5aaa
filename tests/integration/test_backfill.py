"""A backfill of an asset and what lies below it on a real Prefect server. Contract 8.18."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assetflow import Asset, Eager, flow, task
from assetflow.core.freshness.records import Backfill
from assetflow.ledger import Ledger
from assetflow.partitions import IdentityMapper, StartOfDayMapper
from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer

pytestmark = [pytest.mark.long, pytest.mark.prefect]

RAW, HOURS, DAYS = (Asset(f"s3://backfill/{name}") for name in ("raw", "hours", "days"))
FAILING: list[str] = []


@task(inlets=[RAW], outlets=[HOURS])
def make_hours(key: str | None) -> None:
    if key in FAILING:
        raise ValueError("on purpose")


@flow(schedule=Eager(default_partition_mapper=IdentityMapper()))
def hours(partition_key: str | None = None) -> None:
    make_hours(partition_key)


@task(inlets=[HOURS], outlets=[DAYS])
def make_days() -> None: ...


@flow(schedule=Eager(default_partition_mapper=StartOfDayMapper()))
def days(partition_key: str | None = None) -> None:  # noqa: ARG001
    make_days()


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    FAILING.clear()
    with harness(use_running_server=True) as made:
        yield made


def test_8_18_a_backfill_runs_what_is_below_once_and_resumes_after_a_failure(h: Harness) -> None:
    h.deploy(hours)
    h.deploy(days)
    for hour in ("2026-01-01T00", "2026-01-01T01", "2026-01-02T00"):
        h.emit(RAW, partition_key=f"{hour}:00:00")
        h.settle()
    hourly, daily = len(h.runs(hours)), len(h.runs(days))
    FAILING.append("2026-01-01T01:00:00")
    place = Path(h._reader.place)
    with Ledger.open(place) as ledger:
        planned = ledger.reader.backfills.plan(HOURS.uri, None, down=True)
        now = datetime.now(UTC)
        ledger.writer.backfills.begin(Backfill(0, now, HOURS.uri, True, 2), planned, now)
        h.settle()
        record = ledger.reader.backfills.get(1)
        assert record is not None
        each = record.backfill
        assert (record.state, each.done, each.failed, each.removed) == ("failed", 3, 1, 1)
        # The day that was taken off is Eager, and follows the hour that was made.
        assert (len(h.runs(hours)), len(h.runs(days))) == (hourly + 3, daily + 2)
        FAILING.clear()
        ledger.writer.backfills.resume(1, datetime.now(UTC))
        h.settle()
        record = ledger.reader.backfills.get(1)
    assert record is not None
    assert (record.state, record.backfill.done) == ("completed", 5)
    assert (len(h.runs(hours)), len(h.runs(days))) == (hourly + 4, daily + 3)
