"""Pruning removes what is old, keeps what is still needed, and changes no later decision."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, func, select

from assetflow.core.freshness.state.source import REMEMBERED
from assetflow.core.shapes import as_json
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Recording
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Deadline
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from assetflow.ledger.read.pruning import Pruned
from assetflow.ledger.records import EventFilter
from assetflow.ledger.sql.freshness_tables import KEPT_RUN, POLICY_CHANGE
from assetflow.ledger.sql.tables import MISSED_DEADLINE
from assetflow.ledger.write import prune as pruning
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, B, C, deploy, event, recording, update
from tests.ledger.write.test_kept import CORE, RAW, Place, kept, only

BEFORE = NOW
OLD = NOW - timedelta(days=100)


def record(ledger: Ledger, *recordings: Recording, at: datetime = OLD) -> list[Decision]:
    return [each for _, decisions in ledger.writer.events.record(recordings, at) for each in decisions]


def old(*assets: Asset, **fields: Any) -> Recording:
    return update(*assets, **({"occurred": OLD} | fields))


def end(ledger: Ledger, *decisions: Decision) -> list[UUID]:
    """Launch the runs of the decisions and end them."""
    runs = [uuid4() for _ in decisions]
    for decision, run in zip(decisions, runs, strict=True):
        ledger.writer.decisions.launched(decision.id, run, OLD)
        ledger.writer.decisions.ended("Completed", OLD, decision_id=decision.id)
    return runs


def prune(ledger: Ledger, before: datetime = BEFORE) -> Pruned:
    """Prune to the end, and check that a count beforehand gives the same numbers."""
    foreseen, done, step = ledger.reader.pruning.count(before), Pruned(), ledger.writer.prune(before)
    while step.upto is not None:
        done, step = done + step.pruned, ledger.writer.prune(before, step.upto)
    assert done + step.pruned == foreseen
    assert ledger.reader.pruning.count(before) == Pruned()
    return foreseen


def known(ledger: Ledger, *recordings: Recording) -> list[bool]:
    return [ledger.reader.events.get(event.id) is not None for each in recordings for event in each.events]


def newest(ledger: Ledger, *assets: Asset) -> None:
    """Record a newer update of each asset, so that no old one stays because it is the newest."""
    record(ledger, update(*assets, occurred=NOW), at=NOW)


def test_what_is_old_goes_with_receipts_and_decisions(ledger: Ledger) -> None:
    deploy(ledger, A)
    unwanted, wanted = old(C), old(A)
    end(ledger, *record(ledger, unwanted, wanted))
    newest(ledger, A, C)
    assert prune(ledger) == Pruned(events=2, receipts=2, decisions=1)
    assert known(ledger, unwanted, wanted) == [False, False]
    (decision,) = ledger.reader.decisions.find()
    assert [each.uri for each in ledger.reader.decisions.events_of([decision])[decision.id]] == [A.uri]


def test_what_is_young_stays(ledger: Ledger) -> None:
    late, ahead = old(A), update(A, occurred=NOW + timedelta(days=3))
    record(ledger, late, at=NOW)
    record(ledger, ahead, at=OLD)
    newest(ledger, A)
    assert prune(ledger) == Pruned()


def test_pending_partitions_stay(ledger: Ledger) -> None:
    consumer = deploy(ledger, PartitionedAssetTimetable(assets=A & B))
    waiting, through = old(A, partition_key="mon"), old(A, B, partition_key="tue")
    decisions = record(ledger, waiting, through)
    assert [each.target_key for each in decisions] == ["tue"]
    end(ledger, *decisions)
    newest(ledger, A, B)
    assert prune(ledger) == Pruned(events=2, receipts=2)
    # For which keys something has run stays known.
    assert list(ledger.reader.decisions.by_key(consumer.id)) == ["tue"]
    (decision,) = record(ledger, update(B, partition_key="mon"), at=NOW)
    assert decision.events[0].id == waiting.events[0].id


@pytest.mark.parametrize("state", ["waiting", "undeliverable", "running"])
def test_a_decision_whose_run_has_not_ended_stays_with_its_events(ledger: Ledger, state: str) -> None:
    deploy(ledger, A)
    consumed = old(A)
    (decision,) = record(ledger, consumed)
    if state == "undeliverable":
        ledger.writer.decisions.undeliverable(decision.id, "gone", OLD)
    if state == "running":
        ledger.writer.decisions.launched(decision.id, uuid4(), OLD)
    newest(ledger, A)
    assert prune(ledger) == Pruned()
    if state == "undeliverable":
        ledger.writer.decisions.replay(decision.id, NOW)
    if state != "running":
        (_, events) = next(each for each in ledger.reader.decisions.waiting() if each[0].id == decision.id)
        assert [each.id for each in events] == [consumed.events[0].id]


def test_the_newest_update_of_an_asset_and_of_an_alias_stays(ledger: Ledger) -> None:
    first, last = old(A, aliases=("x",)), old(A)
    forgotten = old(A, aliases=("x",))
    record(ledger, forgotten, first, last)
    assert prune(ledger) == Pruned(events=1, receipts=1)
    assert known(ledger, forgotten, first, last) == [False, True, True]
    assert list(ledger.reader.assets.activity()) == [A.uri]
    seen = ledger.reader.feed.end()
    record(ledger, update(A, aliases=("x",)), at=NOW)
    assert [aliases for _, aliases in ledger.reader.feed.after(seen).events] == [[]]


def test_a_recording_is_removed_whole(ledger: Ledger) -> None:
    deploy(ledger, A & Asset("never"))
    together = old(A, C)
    record(ledger, together)
    newest(ledger, C)
    assert prune(ledger) == Pruned()
    assert ledger.reader.pruning.needed_recordings([together.id, uuid4()], BEFORE) == {together.id}
    assert record(ledger, together) == []
    assert ledger.reader.events.count(EventFilter(uri=C.uri)) == 2


@pytest.mark.parametrize("chunk", [1, 3])
def test_after_a_kill_at_any_step_the_next_one_does_the_rest(
    ledger: Ledger, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "CHUNK", chunk)
    deploy(ledger, A)
    end(ledger, *record(ledger, *(old(A) for _ in range(7))))
    newest(ledger, A)
    after = 0
    for _ in range(2):
        step = ledger.writer.prune(BEFORE, after)
        assert step.pruned.events == step.pruned.decisions == chunk
        after = step.upto or 0
    # It was killed here; a new one begins at the beginning.
    assert prune(ledger).events == 7 - 2 * chunk
    assert ledger.reader.events.count() == 1
    assert len(ledger.reader.decisions.find()) == 1


def test_the_rules_decide_the_same_with_and_without_pruning(new_sqlite: NewLedger) -> None:
    """Two ledgers record the same; one of them is pruned after each step."""
    pruned, whole = new_sqlite(), new_sqlite()
    for number, schedule in enumerate((A, A & B, (A & B) | C, AssetAlias("x"), B & AssetAlias("x"))):
        for ledger in (pruned, whole):
            deploy(ledger, schedule, f"flow/{number}", UUID(int=number + 1))
    steps = [A, B, A, C, A, B, B, C, A, A, B, C, B, A]
    for number, asset in enumerate(steps):
        heard = recording(event(asset, occurred=OLD, aliases=("x",) if number % 4 == 1 else ()))
        made = [record(ledger, heard) for ledger in (pruned, whole)]
        ids = [[(each.id, [event.id for event in each.events]) for each in decisions] for decisions in made]
        assert ids[0] == ids[1]
        for ledger, decisions in zip((pruned, whole), made, strict=True):
            end(ledger, *decisions)
        prune(pruned)
    assert pruned.reader.events.count() < whole.reader.events.count() == len(steps)


HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(2 * HOUR, warn_after=HOUR))


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


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


def test_missed_deadlines_go_once_they_are_announced(ledger: Ledger) -> None:
    deploy(ledger, A & B, deadline=Deadline(HOUR))
    for day in range(3):
        ledger.writer.events.record([update(A)], NOW + day * DAY)
        ledger.writer.clock.run(NOW + day * DAY + 2 * HOUR, NOW + day * DAY + 2 * HOUR)
        ledger.writer.events.record([update(B)], NOW + day * DAY + 3 * HOUR)
    later = NOW + 10 * DAY
    assert prune(ledger, later).deadlines == 0
    ledger.writer.deadlines.stored([each.number for each in ledger.writer.deadlines.to_tell(10)], NOW)
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


SLOW_BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(300 * DAY))


def versions(place: Place, asset: Asset) -> int:
    return len(place.ledger.reader.freshness.versions(asset.uri))


def facts(place: Place) -> Sequence[object]:
    """What is said of the assets: states, causes, plan, and how old the data of those with a policy is."""
    reader = place.ledger.reader
    statuses = [(each.uri, each.state, each.causes) for each in reader.freshness.statuses(None, place.now)]
    plan = [as_json(each) for each in reader.freshness.plan(place.now)]
    return [statuses, plan, [(each.uri, each.record.data_time) for each in reader.policies.all()]]


def judged(place: Place) -> datetime | str | None:
    place.later(DAY.total_seconds())
    place.ledger.writer.clock.run(place.now, place.now)
    (found,) = place.ledger.reader.policies.all()
    return found.record.data_time  # pyright: ignore[reportReturnType]


def chain(place: Place) -> datetime:
    """Make a board of a fact of raw data; return when the raw data was updated that the board lacks."""
    place.deploy("core", kept([RAW], [CORE]))
    place.deploy("report", kept([CORE], [SLOW_BOARD], on=()))
    place.run("report", only(place.run("core", only(place.update(RAW)), CORE)), SLOW_BOARD)
    place.later(DAY.total_seconds())
    return again(place)


def again(place: Place) -> datetime:
    """Update the raw data, and let the fact be made again; return when the data was updated."""
    decision = only(place.update(RAW))
    updated = place.now
    place.run("core", decision, CORE)
    return updated


@pytest.mark.parametrize("is_redeployed", [False, True], ids=["", "reads nothing any more"])
def test_8_12_the_data_time_is_that_of_the_first_version_that_was_not_read(place: Place, is_redeployed: bool) -> None:
    stale = chain(place)
    if is_redeployed:
        place.deploy("report", kept([], [SLOW_BOARD], on=()))
    for _ in range(3):
        place.later(100 * DAY.total_seconds())
        again(place)
    before = facts(place)
    prune(place.ledger, place.now)
    assert facts(place) == before
    # The update judges the policy again, with what is left.
    again(place)
    assert judged(place) == stale


def test_8_6_inputs_that_were_tried_stay_tried(place: Place) -> None:
    """The version that a run tried comes back after another one: it is not tried again."""
    place.deploy("core", kept([RAW], [CORE]))
    place.end(only(place.update(RAW, version="1")), "failed")
    place.deploy("core", kept([RAW], [CORE]), paused=True)
    place.ledger.writer.consumers.switch(place.consumers["core"].id, paused=True, now=place.later())
    for version in ("2", "3", "1"):
        place.update(RAW, version=version)
    place.later(10 * DAY.total_seconds())
    prune(place.ledger, place.now)
    _, made = place.ledger.writer.consumers.switch(place.consumers["core"].id, paused=False, now=place.later())
    assert made == []


def test_8_5_the_update_that_an_output_is_compared_with_stays(place: Place) -> None:
    """Another flow updates the output from something else: it is compared with the update before."""
    place.deploy("core", kept([RAW], [CORE]))
    other = Asset("s3://lake/other")
    place.deploy("patch", FlowDeclaration(ConsumerOptions(to_schedule(other)), (CORE,), (other,)))
    place.run("core", only(place.update(RAW)), CORE)
    for _ in range(2):
        patched = only(place.update(other))
        place.make("patch", patched, CORE, pins={other.uri: 99})
        place.end(patched)
    before = facts(place)
    place.later(10 * DAY.total_seconds())
    prune(place.ledger, place.now)
    assert facts(place) == before
