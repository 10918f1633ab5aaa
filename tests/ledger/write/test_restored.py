"""A ledger that was lost and put back from a backup goes on as one that was never lost. Contract 8.17, 9.6."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from assetflow.core.rules.adoption import Decided
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import CONSUMER_CLOCK, QUEUE_CLOCK
from tests.ledger.write.test_clock import END, INSTANT, SCHEDULES, START, let_pass, opened, recordings, story, updates


def empty(folder: Path, template: Path) -> Ledger:
    return Ledger.open(shutil.copy(template, folder / "ledger.db"))


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
    queue = select(QUEUE_CLOCK.c.target_key, QUEUE_CLOCK.c.overdue, QUEUE_CLOCK.c.decided).order_by(
        QUEUE_CLOCK.c.target_key
    )
    with ledger.writer._store.reads() as connection:  # pyright: ignore[reportPrivateUsage]
        return [connection.execute(query).all() for query in (hours, queue)]


def missed(ledger: Ledger) -> set[Any]:
    return {(each.due, each.target_key) for each in ledger.writer.clock.to_announce(1000)}


@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(
    found=updates,
    known=st.integers(0, 11),
    lost=st.integers(0, 45),
    more=updates,
    seed=st.none() | st.integers(0, 99),
)
def test_a_restored_ledger_goes_on_as_one_that_was_never_lost(
    template: Path, options: ConsumerOptions, found: list[Any], known: int, lost: int, more: list[Any], seed: int | None
) -> None:
    if seed is not None:
        # The order of updates of one instant is that of the ledger.
        found = list({hour: (hour, asset, key) for hour, asset, key in found}.values())
    given = recordings(found, options)
    until = max([START + timedelta(hours=lost), *(moment for moment, _ in given[:known])])
    later = [(moment + (END - START), each) for moment, each in recordings([*found, *more], options)[len(found) :]]
    later = [(moment, type(each)(each.id, each.events, durable=moment)) for moment, each in later]
    again = list(given)
    if seed is not None:
        random.Random(seed).shuffle(again)
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        whole, restored = opened(Path(first), template, options), opened(Path(second), template, options)
        try:
            lived(whole, given)
            let_pass(whole, END)
            lived(restored, given[:known])
            runs = runs_of(whole, until)
            restore(restored, runs, again)
            assert story_of(restored) == story_of(whole)
            assert what_holds(restored) == what_holds(whole)
            assert missed(restored) <= missed(whole)
            for ledger in (whole, restored):
                lived(ledger, later)
                let_pass(ledger, END + (END - START))
            assert story_of(restored) == story_of(whole)
            assert what_holds(restored) == what_holds(whole)
        finally:
            whole.close()
            restored.close()


@pytest.mark.parametrize("options", SCHEDULES.values(), ids=SCHEDULES.keys())
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(found=updates, lost=st.integers(0, 45), more=updates)
def test_a_rebuilt_ledger_goes_on_as_one_that_was_never_lost(
    template: Path, options: ConsumerOptions, found: list[Any], lost: int, more: list[Any]
) -> None:
    """Openings and deadlines before the rebuild count as told: they lead to nothing any more."""
    given = recordings(found, options)
    later = [(moment + (END - START), each) for moment, each in recordings([*found, *more], options)[len(found) :]]
    later = [(moment, type(each)(each.id, each.events, durable=moment)) for moment, each in later]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        whole, rebuilt = opened(Path(first), template, options), empty(Path(second), template)
        try:
            lived(whole, given)
            let_pass(whole, END)
            runs = runs_of(whole, START + timedelta(hours=lost))
            rebuilt.writer.events.begin_adoption(runs)
            text = declaration_to_text(FlowDeclaration(options))
            rebuilt.writer.consumers.deploy("flow/one", UUID(int=1), None, text, False, False, END, created=START)
            restore(rebuilt, runs, given)
            told = options.deadline is not None or options.schedule.opening is not None
            if not told:
                assert story_of(rebuilt) == story_of(whole)
                assert what_holds(rebuilt) == what_holds(whole)
            adopted = {each.id: each.made for each in rebuilt.reader.decisions.find(limit=1000)}
            assert {each.id: each.made for each in runs}.items() <= adopted.items()
            for ledger in (whole, rebuilt):
                lived(ledger, later)
                let_pass(ledger, END + (END - START))
            if not told:
                assert story_of(rebuilt) == story_of(whole)
            consumed = [event for run in story(rebuilt)[0] for event in run[-1]]
            assert options.schedule.is_partitioned or len(consumed) == len(set(consumed))
        finally:
            whole.close()
            rebuilt.close()
