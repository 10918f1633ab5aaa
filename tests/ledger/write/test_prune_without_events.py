"""Pruning removes what has no events: old decisions and runs of Eager flows, missed deadlines, changes of freshness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Table, func, select

from assetflow.core.freshness.state.source import REMEMBERED
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.timing import Deadline
from assetflow.ledger import Ledger
from assetflow.ledger.read.pruning import Pruned
from assetflow.ledger.sql.freshness_tables import KEPT_RUN, POLICY_CHANGE
from assetflow.ledger.sql.tables import DECISION, MISSED_DEADLINE
from assetflow.ledger.write import prune as pruning
from tests.ledger.making import A, B, deploy, update
from tests.ledger.write.test_kept import Place, kept, only

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RAW, CORE = Asset("s3://lake/raw"), Asset("s3://lake/core")
BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(2 * HOUR, warn_after=HOUR))


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


def prune(ledger: Ledger, before: datetime) -> Pruned:
    """Prune to the end, and check that a count beforehand gives the same numbers."""
    foreseen, done, step = ledger.reader.pruning.count(before), Pruned(), ledger.writer.prune(before)
    while step.upto is not None:
        done, step = done + step.pruned, ledger.writer.prune(before, step.upto)
    assert done + step.pruned == foreseen
    return foreseen


def count(ledger: Ledger, table: Table) -> int:
    with ledger.writes() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


@pytest.mark.parametrize("rows", [3, 5_000])
def test_decisions_and_runs_of_eager_flows_go(place: Place, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "ROWS", rows)
    place.deploy("core", kept([RAW], [CORE]))
    for _ in range(REMEMBERED + 5):
        place.run("core", only(place.update(RAW)), CORE)
    last = only(place.update(RAW))
    place.run("core", last, CORE)

    pruned = prune(place.ledger, place.later())

    assert (pruned.decisions, pruned.runs) == (REMEMBERED + 5, 6)
    assert [each.id for each in place.ledger.reader.decisions.find()] == [last.id]
    # How long a run is expected to take stays known.
    assert count(place.ledger, KEPT_RUN) == REMEMBERED
    assert prune(place.ledger, place.later()) == Pruned()
    decision = only(place.update(RAW, version="1"))
    place.run("core", decision, CORE)
    assert not place.update(RAW, version="1")


def test_what_a_target_waits_for_and_what_is_young_stays(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    young = place.now
    first = only(place.update(RAW))
    place.make("core", first, CORE)
    place.end(first, "failed")
    second = only(place.update(RAW))

    pruned = prune(place.ledger, young)

    assert (pruned.decisions, pruned.runs) == (0, 0)
    assert [each.id for each in place.ledger.reader.decisions.find()] == [second.id, first.id]
    # The last one is not launched yet: the launch reads what it was asked for.
    prune(place.ledger, place.later())
    (left,) = place.ledger.reader.decisions.find()
    assert set(place.ledger.reader.decisions.asked([left])) == {second.id}
    assert count(place.ledger, KEPT_RUN) == 1


def test_of_a_key_the_last_decision_stays(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], mapper=IdentityMapper()))
    for key in ("mon", "tue", "mon", "mon"):
        place.run("core", only(place.update(RAW, key)), CORE)

    assert prune(place.ledger, place.later()).decisions == 2

    consumer = place.consumers["core"].id
    assert list(place.ledger.reader.decisions.by_key(consumer)) == ["tue", "mon"]


def test_backfills_of_a_key_stay_counted(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], mapper=IdentityMapper()))
    consumer = place.consumers["core"].id
    for done in (0, 1):
        (decision,) = place.ledger.writer.decisions.backfill(consumer, {"mon": done}, at_once=1, now=place.later())
        place.run("core", decision, CORE)

    assert prune(place.ledger, place.later()).decisions == 0
    assert place.ledger.reader.decisions.by_key(consumer)["mon"].backfills == 2


def test_missed_deadlines_go_once_they_are_announced(ledger: Ledger) -> None:
    deploy(ledger, A & B, deadline=Deadline(HOUR))
    for day in range(3):
        ledger.writer.events.record([update(A)], NOON + day * DAY)
        ledger.writer.clock.run(NOON + day * DAY + 2 * HOUR, NOON + day * DAY + 2 * HOUR)
        ledger.writer.events.record([update(B)], NOON + day * DAY + 3 * HOUR)
    later = NOON + 10 * DAY
    assert prune(ledger, later).deadlines == 0
    ledger.writer.clock.announced([each.number for each in ledger.writer.clock.to_announce(10)], NOON)

    assert prune(ledger, later).deadlines == 2
    # Its number is where readers of what is new go on.
    assert [each.number for each in ledger.reader.deadlines.missed()] == [3]
    assert count(ledger, MISSED_DEADLINE) == 1


def test_changes_of_freshness_go_once_prefect_has_them(place: Place) -> None:
    place.deploy("report", kept([RAW], [BOARD], on=()))
    place.run("report", only(place.update(RAW)), BOARD)
    place.update(RAW)
    place.later(5 * HOUR.total_seconds())
    place.ledger.writer.clock.run(place.now, place.now)
    changes = place.ledger.reader.policies.changes()
    assert len(changes) > 1
    assert prune(place.ledger, place.later()).changes == 0
    place.ledger.writer.freshness.stored([each.number for each in changes], place.now)

    assert prune(place.ledger, place.later()).changes == len(changes) - 1
    assert place.ledger.reader.policies.changes()[0].number == changes[0].number
    assert count(place.ledger, POLICY_CHANGE) == 1


def test_decisions_without_updates_go(ledger: Ledger) -> None:
    """A deadline may run a flow for which nothing is queued any more."""
    consumer = deploy(ledger, A)
    with ledger.writes() as connection:
        for number in range(3):
            values = {"id": uuid4(), "consumer": consumer.id, "deployment_id": uuid4(), "target_key": ""}
            values |= {"made": NOON, "decided": NOON, "kind": "time", "status": "ended", "ended": NOON}
            values |= {"flow_run_id": uuid4(), "attempts": 0, "error": "", "run_state": "Completed"}
            values |= {"by_deadline": False, "because": [], "number": number + 1}
            connection.execute(DECISION.insert().values(**values))

    assert prune(ledger, NOON + DAY) == Pruned(decisions=2)
    assert [each.number for each in ledger.reader.decisions.find()] == [3]
