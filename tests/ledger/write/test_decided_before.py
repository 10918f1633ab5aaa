"""What the clock decides just before a change of its consumer is a run that goes on in the data graph (8.6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.timing import Intake
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import BOARD, CORE, LEFT, RAW, Place, kept, only


def when_quiet(seconds: int, *, made: tuple[Asset, ...] = (CORE,)) -> FlowDeclaration:
    """The declaration of a flow that makes an asset when its input is quiet."""
    options = ConsumerOptions(Schedule(RAW), intake=Intake(debounce=timedelta(seconds=seconds)))
    return FlowDeclaration(options, made, (RAW,), tuple(Output(each.token, (RAW.token,)) for each in made))


def redeploy(place: Place, number: int) -> None:
    place.ledger.writer.consumers.change(number, declaration_to_text(when_quiet(60)), place.now)


def become_eager(place: Place, number: int) -> None:
    _, made = place.ledger.writer.consumers.change(number, declaration_to_text(kept([RAW], [CORE])), place.now)
    assert [each.kind for each in made] == ["asset"]


def pause(place: Place, number: int) -> None:
    place.ledger.writer.consumers.switch(number, paused=True, now=place.now)


def remove_queued(place: Place, number: int) -> None:
    place.ledger.writer.queues.remove(number, uri=RAW.uri, now=place.now)


@pytest.mark.parametrize("change", [redeploy, become_eager, pause, remove_queued])
def test_a_flow_below_waits_for_a_run_that_was_decided_just_before_a_change(
    sqlite_ledger: Ledger, change: Callable[[Place, int], None]
) -> None:
    place = Place(sqlite_ledger)
    place.deploy("core", when_quiet(10))
    place.deploy("board", kept([CORE, LEFT], [BOARD]))
    place.update(CORE)
    place.run("board", only(place.update(LEFT)), BOARD)
    place.update(RAW)
    place.later(30)
    change(place, place.consumers["core"].id)
    (found,) = place.ledger.reader.decisions.find(consumer=place.consumers["core"].id)
    decision = Decision(found.id, found.consumer, found.deployment_id, None, (), found.made)
    assert place.update(LEFT) == []
    assert place.names(place.run("core", decision, CORE)) == ["board"]


def test_an_end_that_comes_after_the_next_decision_leaves_that_run_going_on(sqlite_ledger: Ledger) -> None:
    place = Place(sqlite_ledger)
    place.deploy("core", when_quiet(10))
    place.deploy("board", kept([CORE, LEFT], [BOARD]))
    place.update(CORE)
    place.run("board", only(place.update(LEFT)), BOARD)
    place.update(RAW)
    (first,) = place.ledger.writer.clock.run(place.later(30), place.now).decisions
    place.update(RAW)
    place.later(30)
    assert place.end(first) == []
    assert place.update(LEFT) == []
