"""A ledger that was lost and put back from a backup goes on as one that was never lost. Contract 8.17, 9.6."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from assetflow.core.rules.adoption import Decided
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import CONSUMER_CLOCK, QUEUE_CLOCK
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


def lived(ledger: Ledger, found: Sequence[Any]) -> None:
    """Let a ledger record these updates as they come, and decide each instant in time."""
    for moment, recording in found:
        let_pass(ledger, moment - INSTANT)
        ledger.writer.events.record([recording], moment)


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
    for _, recording in found:
        ledger.writer.events.record([recording], END)
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
    return {(each.due, each.target_key) for each in ledger.writer.clock.to_announce(1000)}


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
@settings(max_examples=1, deadline=None, phases=[Phase.generate])
@given(**some, seed=seeds)
def test_a_ledger_put_back_or_rebuilt_goes_on_as_one_that_was_never_lost(
    template: Path, options: ConsumerOptions, **drawn: Any
) -> None:
    compare(template, options, **drawn)


@pytest.mark.long
@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(**some, seed=seeds)
def test_many_ledgers_put_back_or_rebuilt(template: Path, options: ConsumerOptions, **drawn: Any) -> None:
    compare(template, options, **drawn)
