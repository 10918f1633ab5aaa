"""Pruning removes what is old, keeps what is still needed, and changes no later decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger
from assetflow.ledger.read.pruning import Pruned
from assetflow.ledger.records import EventFilter
from assetflow.ledger.write import prune as pruning
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, B, C, deploy, event, recording, update

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


def prune(ledger: Ledger) -> Pruned:
    """Prune to the end, and check that a count beforehand gives the same numbers."""
    foreseen, done, after = ledger.reader.pruning.count(BEFORE), Pruned(), 0
    while (step := ledger.writer.prune(BEFORE, after)).upto is not None:
        done, after = done + step.pruned, step.upto
    done += step.pruned
    assert done == foreseen
    assert ledger.reader.pruning.count(BEFORE) == Pruned()
    return done


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


def test_what_is_queued_stays_and_is_decided_on_as_before(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    queued = old(A)
    record(ledger, queued)
    newest(ledger, A)
    assert prune(ledger) == Pruned()
    (decision,) = record(ledger, update(B), at=NOW)
    assert decision.events[0].id == queued.events[0].id


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


def test_an_event_stays_as_long_as_one_of_its_consumers_needs_it(ledger: Ledger) -> None:
    deploy(ledger, A, "flow/one")
    deploy(ledger, A & B, "flow/two")
    end(ledger, *record(ledger, old(A)))
    newest(ledger, A)
    assert prune(ledger) == Pruned()
    assert len(ledger.reader.decisions.find()) == 2


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


def test_what_was_refused_goes(ledger: Ledger) -> None:
    for moment in (OLD, NOW):
        ledger.writer.events.refuse({}, "blank", "1.5", "prefect", uuid4(), moment)
    assert prune(ledger) == Pruned(refused=1)
    assert len(ledger.reader.events.refused()) == 1


def test_backfills_stay(ledger: Ledger) -> None:
    consumer = deploy(ledger, PartitionedAssetTimetable(assets=A))
    (decision,) = ledger.writer.decisions.backfill(consumer.id, {"mon": 0}, at_once=1, now=OLD)
    end(ledger, decision)
    assert prune(ledger) == Pruned()
    assert ledger.reader.decisions.by_key(consumer.id)["mon"].backfills == 1


def test_which_decisions_and_runs_are_over(ledger: Ledger) -> None:
    deploy(ledger, A)
    over, waiting = record(ledger, old(A), old(A))
    (young,) = record(ledger, update(A), at=NOW)
    runs = end(ledger, over, young)
    assert ledger.reader.pruning.open_decisions([over.id, waiting.id, young.id, uuid4()], BEFORE) == {
        waiting.id,
        young.id,
    }
    assert ledger.reader.pruning.finished_runs(runs, BEFORE) == {runs[0]}


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

    def consumers(ledger: Ledger) -> list[Consumer]:
        schedules = (A, A & B, (A & B) | C, AssetAlias("x"), B & AssetAlias("x"))
        return [
            deploy(ledger, schedule, f"flow/{number}", UUID(int=number + 1))
            for number, schedule in enumerate(schedules)
        ]

    pruned, whole = new_sqlite(), new_sqlite()
    for ledger in (pruned, whole):
        consumers(ledger)
    steps = [A, B, A, C, A, B, B, C, A, A, B, C, B, A]
    for number, asset in enumerate(steps):
        heard = recording(event(asset, occurred=OLD, aliases=("x",) if number % 4 == 1 else ()))
        made = [record(ledger, heard) for ledger in (pruned, whole)]
        assert [(each.id, [e.id for e in each.events]) for each in made[0]] == [
            (each.id, [e.id for e in each.events]) for each in made[1]
        ]
        for ledger, decisions in zip((pruned, whole), made, strict=True):
            end(ledger, *decisions)
        prune(pruned)
    assert pruned.reader.events.count() < whole.reader.events.count() == len(steps)
