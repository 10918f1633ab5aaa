"""Graphs of flows that were judged wrong once, with real flows. Contract 8.5, 8.6, 8.12, 8.18."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow import Asset, Eager, FreshnessPolicy, OnMissing, flow, outlet_events, task
from assetflow.core.freshness.records import Backfill
from assetflow.ledger import Ledger
from assetflow.partitions import IdentityMapper, LastMapper
from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer

pytestmark = [pytest.mark.long, pytest.mark.prefect]

MINUTE = timedelta(minutes=1)
RAW, RATES = Asset("s3://graphs/raw"), Asset("s3://graphs/rates")
BY_KEY = Eager(default_partition_mapper=IdentityMapper())
RAN: list[str] = []


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    RAN.clear()
    with harness(use_running_server=True) as made:
        yield made


def made(name: str, policy: FreshnessPolicy | None = None) -> Asset:
    return Asset(f"s3://graphs/{name}", freshness=policy)


def keeper(output: Asset, *reads: Asset, schedule: Any, keys: tuple[str, ...] = ()) -> Any:
    """Return a flow that makes one asset from others; it notes its name in `RAN`."""
    name = output.uri.rpartition("/")[2]

    @task(name=f"make-{name}", inlets=list(reads), outlets=[output])
    def make() -> None:
        RAN.append(name)
        outlet_events[output].add_partitions(keys)

    def plain() -> None:
        make()

    def by_key(partition_key: str | None = None) -> None:  # noqa: ARG001
        make()

    return flow(name=name, schedule=schedule)(by_key if schedule is BY_KEY else plain)


def test_8_12_nothing_new_is_current_in_an_uneven_diamond(h: Harness) -> None:
    core, mid, board = made("core"), made("mid"), made("board", FreshnessPolicy(60 * MINUTE))
    for output, *reads in ((core, RAW), (mid, core), (board, core, mid)):
        h.deploy(keeper(output, *reads, schedule=Eager()))
    h.emit(RAW)
    assert h.settle().freshness(board) == "pass"
    assert h.advance(120 * MINUTE).freshness(board) == "pass"


def test_8_6_a_flow_waits_for_what_comes_over_two_levels(h: Harness) -> None:
    p, q, q2, x, y = map(made, ("p", "q", "q2", "x", "y"))
    for output, *reads in ((p, RAW), (q, p), (q2, q), (x, p, q), (y, q2, RATES)):
        h.deploy(keeper(output, *reads, schedule=Eager()))
    for each in (RATES, RAW):
        h.emit(each)
    h.settle()
    RAN.clear()
    h.emit(RAW)
    h.emit(RATES)
    h.settle()
    assert sorted(RAN) == ["p", "q", "q2", "x", "y"]
    assert RAN.index("q2") < RAN.index("y")


def test_8_12_the_data_time_follows_from_what_was_read_then(h: Harness) -> None:
    core = made("last", FreshnessPolicy(60 * MINUTE))
    schedule = Eager(RAW, on=["code"], partition_mapper_config={RAW: LastMapper(2)})
    for key in ("2026-03-02", "2026-03-03"):
        h.emit(RAW, partition_key=key)
    h.deploy(keeper(core, RAW, schedule=schedule))
    assert h.settle().freshness(core) == "pass"
    h.advance(30 * MINUTE).emit(RAW, partition_key="2026-03-02")
    h.settle().advance(30 * MINUTE).emit(RAW, partition_key="2026-03-05")
    assert h.settle().freshness(core) == "pass"
    assert RAN == ["last"]
    assert h.advance(35 * MINUTE).freshness(core) == "fail"


def test_8_12_what_was_read_before_a_redeploy_makes_an_asset_too_old(h: Harness) -> None:
    core = made("moved", FreshnessPolicy(60 * MINUTE))
    h.deploy(keeper(core, RAW, schedule=Eager(on=["code"])))
    h.emit(RAW)
    assert h.settle().freshness(core) == "pass"
    h.deploy(keeper(core, RATES, schedule=Eager(on=["code"])))
    h.emit(RAW)
    assert h.settle().advance(65 * MINUTE).freshness(core) == "fail"


def test_8_5_a_flow_without_partitions_that_writes_keys_is_made_once(h: Harness) -> None:
    h.deploy(keeper(made("keyed"), RAW, schedule=OnMissing(), keys=("k",)))
    for _ in range(3):
        h.emit(RAW)
        h.settle()
    assert RAN == ["keyed"]
    assert h.status(made("keyed"), "k").state == "stale"


def test_8_18_a_backfill_goes_through_a_plain_flow_between_two_with_keys(h: Harness) -> None:
    core, total, day = map(made, ("of-keys", "total", "day"))
    for output, *reads in ((core, RAW), (total, core), (day, core, total)):
        h.deploy(keeper(output, *reads, schedule=None if output is total else BY_KEY))
    h.emit(RAW, partition_key="d1")
    h.settle()
    RAN.clear()
    with Ledger.open(Path(h._reader.place)) as ledger:
        planned = ledger.reader.backfills.plan(core.uri, None, down=True)
        now = datetime.now(UTC)
        ledger.writer.backfills.begin(Backfill(0, now, core.uri, True, 2), planned, now)
        h.settle()
    assert RAN == ["of-keys", "total", "day"]
