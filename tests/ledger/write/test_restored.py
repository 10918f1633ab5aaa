"""A ledger that is rebuilt, or put back from a backup, goes on as one that was never lost. Contract 8.17, 9.6."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from assetflow.core.rules.adoption import Decided
from assetflow.core.shapes import as_json
from assetflow.core.values.events import Recording
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Intake
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.sql.tables import CONSUMER_CLOCK, QUEUE_CLOCK
from tests.ledger.making import NOW, A, B, declared, deploy, event, recording
from tests.ledger.write.test_clock import (
    END,
    INSTANT,
    SCHEDULES,
    START,
    deploy_timed,
    let_pass,
    new,
    recordings,
    story,
    updates,
)

HOUR = timedelta(hours=1)


def test_a_run_that_is_taken_over_makes_later_updates_wait(ledger: Ledger) -> None:
    consumer = deploy(ledger, A | B, coalesce=True)
    found, lost, later = event(A), event(A), event(B)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id, lost.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.record([recording(found), recording(later)], NOW)
    ledger.writer.events.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]
    assert [each.id for each in ledger.reader.queues.events(consumer.id, None)] == [later.id]
    ledger.writer.decisions.ended("Completed", NOW, decision_id=earlier.id)
    assert ledger.reader.queues.events(consumer.id, None) == []


def test_a_changed_schedule_decides_nothing_that_was_decided_before(ledger: Ledger) -> None:
    """A restored backup: its queue holds events that were consumed together with events that it does not know."""
    consumer = deploy(ledger, A & B)
    queued, missing = event(A), event(B)
    ledger.writer.events.record([recording(queued)], NOW)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([queued.id, missing.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    _, decisions = ledger.writer.consumers.change(consumer.id, declared(A | B), NOW)
    assert decisions == []
    ((_, decisions),) = ledger.writer.events.record([recording(missing)], NOW)
    assert [each.id for each in decisions] == [earlier.id]


def test_events_that_another_process_found_are_taken_over(ledger: Ledger) -> None:
    """The evaluator that began the rebuild was killed, and nothing more is found for this consumer."""
    consumer = deploy(ledger, A & B)
    found, lost, later = event(A), event(A), event(B)
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([found.id, lost.id]), NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.record([recording(found)], NOW)
    ledger.writer.events.begin_adoption([earlier])
    ledger.writer.events.end_adoption(NOW)
    assert [each.id for each in ledger.reader.decisions.find(limit=10)] == [earlier.id]
    assert ledger.writer.events.record([recording(later)], NOW)[0][1] == []


def test_a_cooldown_counts_from_a_run_none_of_whose_updates_is_found(ledger: Ledger) -> None:
    """They were recorded in the lost ledger only. A later update waits for the end of the cooldown."""
    consumer = deploy(ledger, A | B, intake=Intake(cooldown=HOUR))
    earlier = Decided(uuid4(), consumer.deployment_id, None, frozenset([uuid4()]), NOW)
    older = replace(earlier, id=uuid4(), made=NOW - HOUR)
    ledger.writer.events.begin_adoption([older, earlier])
    later = event(A)
    ledger.writer.events.record([Recording(later.id, (later,), durable=NOW + HOUR / 2)], NOW + 3 * HOUR)
    ledger.writer.events.end_adoption(NOW + 3 * HOUR)
    ledger.writer.clock.run(NOW + 3 * HOUR, NOW + 3 * HOUR)
    made = {each.id: each.made for each in ledger.reader.decisions.find(limit=10)}
    assert made.pop(earlier.id) == NOW
    assert made.pop(older.id) == NOW - HOUR
    assert list(made.values()) == [NOW + HOUR]
    record = ledger.reader.decisions.get(earlier.id)
    assert record is not None
    assert as_json(decision_explanation(ledger.reader, record))


def lived(ledger: Ledger, found: Sequence[Any]) -> None:
    """Let a ledger record these updates as they come, and decide each instant in time."""
    for moment, each in found:
        let_pass(ledger, moment - INSTANT)
        ledger.writer.events.record([each], moment)


def runs_of(ledger: Ledger, until: datetime) -> list[Decided]:
    """What Prefect's runs tell of the decisions that were made until the ledger was lost."""
    found = [each for each in ledger.reader.decisions.find(limit=1000) if each.made <= until]
    consumed = ledger.reader.decisions.events_of(found)
    return [
        Decided(
            each.id,
            each.deployment_id,
            each.target_key,
            frozenset(event.id for event in consumed[each.id]),
            each.made,
            created=each.made + timedelta(seconds=1),
            opening=each.opening,
            by_deadline=each.by_deadline,
        )
        for each in found
    ]


def restore(ledger: Ledger, decided: Sequence[Decided], found: Sequence[Any]) -> None:
    ledger.writer.events.begin_adoption(decided)
    for _, each in found:
        ledger.writer.events.record([each], END)
    ledger.writer.events.end_adoption(END)
    let_pass(ledger, END)


def story_of(ledger: Ledger) -> list[Any]:
    """Return the runs with what each has consumed, and the receipts."""
    runs, receipts, _ = story(ledger)
    return [[(*run[:-1], set(run[-1])) for run in runs], receipts]


def what_holds(ledger: Ledger) -> list[Any]:
    """Return what the clock remembers that matters from now on."""
    hours = select(CONSUMER_CLOCK.c.opened, CONSUMER_CLOCK.c.is_open, CONSUMER_CLOCK.c.due, CONSUMER_CLOCK.c.deadlines)
    queue = select(QUEUE_CLOCK.c.target_key, QUEUE_CLOCK.c.overdue, QUEUE_CLOCK.c.decided)
    with ledger.reads() as connection:
        return [connection.execute(query).all() for query in (hours, queue.order_by(QUEUE_CLOCK.c.target_key))]


def missed(ledger: Ledger) -> set[Any]:
    return {(each.due, each.target_key) for each in ledger.writer.deadlines.to_tell(1000)}


def same(found: Ledger, expected: Ledger) -> None:
    assert story_of(found) == story_of(expected)
    assert what_holds(found) == what_holds(expected)


LIFE = END - START
some = {"found": updates, "known": st.integers(0, 11), "lost": st.integers(0, 45), "more": updates}
seeds = st.none() | st.integers(0, 99)


def compare(
    template: Path, options: ConsumerOptions, found: list[Any], known: int, lost: int, more: list[Any], seed: int | None
) -> None:
    """Lose a ledger, put one back from a backup, build one anew, and let all three go on."""
    if seed is not None:
        # The order of updates of one instant is that of the ledger.
        found = list({hour: (hour, asset, key) for hour, asset, key in found}.values())
    given = recordings(found, options)
    following = recordings([(moment + LIFE, asset, key) for moment, asset, key in [*found, *more]], options)[
        len(found) :
    ]
    with new(template) as whole, new(template) as restored, new(template) as rebuilt:
        for ledger in (whole, restored):
            deploy_timed(ledger, options)
        lived(whole, given)
        let_pass(whole, END)

        lived(restored, given[:known])
        until = max([START + timedelta(hours=lost), *(moment for moment, _ in given[:known])])
        restore(restored, runs_of(whole, until), given if seed is None else Random(seed).sample(given, len(given)))
        same(restored, whole)
        assert missed(restored) <= missed(whole)

        runs = runs_of(whole, START + timedelta(hours=lost))
        rebuilt.writer.events.begin_adoption(runs)
        deploy_timed(rebuilt, options, END, created=START)
        restore(rebuilt, runs, given)
        # Openings and deadlines before the rebuild count as told: they lead to nothing any more.
        told = options.deadline is not None or options.schedule.opening is not None
        if not told:
            same(rebuilt, whole)
        adopted = {each.id: each.made for each in rebuilt.reader.decisions.find(limit=1000)}
        assert {each.id: each.made for each in runs}.items() <= adopted.items()

        for ledger in (whole, restored, rebuilt):
            lived(ledger, following)
            let_pass(ledger, END + LIFE)
        same(restored, whole)
        if not told:
            assert story_of(rebuilt) == story_of(whole)
        consumed = [event for run in story(rebuilt)[0] for event in run[-1]]
        assert options.schedule.is_partitioned or len(consumed) == len(set(consumed))


@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(**some, seed=seeds)
def test_a_ledger_put_back_or_rebuilt_goes_on_as_one_that_was_never_lost(
    template: Path, options: ConsumerOptions, **drawn: Any
) -> None:
    compare(template, options, **drawn)
