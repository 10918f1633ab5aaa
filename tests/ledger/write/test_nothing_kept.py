"""The last flow that compares anything is gone: the clock has nothing to do for it any more. Contract 8.16, 9.6."""

from datetime import timedelta

import pytest
from sqlalchemy import update as update_rows

from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Intake
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from assetflow.ledger.sql.freshness_tables import TARGET
from tests.ledger.making import NOW, A, deploy, update
from tests.ledger.write.test_kept import CORE, RAW, Place, kept, only
from tests.ledger.write.test_lazy import BOARD, lazy

HOUR = timedelta(hours=1)


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


def remove(place: Place, name: str) -> None:
    place.ledger.writer.consumers.remove(place.consumers[name].id, place.later())


def fail(place: Place) -> None:
    """Let a flow fail that has a retry left."""
    place.deploy("core", kept([RAW], [CORE], retries=1))
    place.end(only(place.update(RAW)), "failed")


@pytest.mark.parametrize("becomes", [None, FlowDeclaration(ConsumerOptions(), (CORE,), (RAW,))])
def test_a_retry_of_a_flow_that_is_gone_or_another_leaves_the_clock_nothing_to_do(
    place: Place, becomes: FlowDeclaration | None
) -> None:
    fail(place)
    remove(place, "core") if becomes is None else place.deploy("core", becomes)
    assert place.ledger.writer.clock.run(place.now + HOUR, place.now + HOUR).next is None


def test_a_policy_of_a_flow_that_is_gone_leaves_the_clock_nothing_to_do(place: Place) -> None:
    place.deploy("core", lazy([RAW], [BOARD]))
    place.update(RAW)
    place.ledger.writer.clock.run(place.later(), place.now)
    place.update(RAW)
    remove(place, "core")
    passed = place.ledger.writer.clock.run(place.now + 2 * HOUR, place.now + 2 * HOUR)
    assert passed.next is None
    assert not passed.policy_changes


def test_others_are_decided_on_a_ledger_that_was_stuck(place: Place) -> None:
    fail(place)
    remove(place, "core")
    ledger = place.ledger
    with ledger._engine.begin() as connection:
        connection.execute(update_rows(TARGET).values(look=NOW))
    deploy(ledger, A, name="flow/quiet", intake=Intake(debounce=HOUR))
    ledger.writer.events.record([update(A)], place.now)
    assert ledger.writer.clock.run(place.now, place.now).next == place.now + HOUR
    assert len(ledger.writer.clock.run(place.now + HOUR, place.now + HOUR).decisions) == 1


def test_a_flow_that_comes_back_is_compared_with_what_came_while_it_was_gone(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1))
    place.run("core", only(place.update(RAW)), CORE)
    remove(place, "core")
    place.update(RAW)
    (decision,) = place.deploy("core", kept([RAW], [CORE], retries=1))
    assert [each.kind for each in decision.because] == ["data"]
