"""A rebuilt ledger takes over what has its run already, in whatever order the updates are found again."""

import random
from datetime import UTC, datetime
from uuid import UUID, uuid4, uuid5

import pytest

from assetflow.core.rules.adoption import Adoption, Decided
from assetflow.core.rules.fold import record_and_pass
from assetflow.core.rules.registry import deploy
from assetflow.core.rules.state import State
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def new_state() -> State:
    state = State()
    schedules = (Asset("a") & Asset("b"), Asset("a") | Asset("b"))
    for number, schedule in enumerate(schedules, 1):
        options = ConsumerOptions(to_schedule(schedule))
        deploy(state, Consumer(number, str(number), uuid5(UUID(int=0), str(number)), options))
    return state


def updates(count: int, dice: random.Random) -> list[Recording]:
    events = [AssetEvent(uuid4(), Asset(dice.choice("ab")), NOON, Origin("api")) for _ in range(count)]
    return [Recording(event.id, (event,)) for event in events]


def of(decision: Decision) -> Decided:
    events = frozenset(event.id for event in decision.events)
    return Decided(decision.id, decision.deployment_id, decision.target_key, events, decision.made)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_decisions_in_any_order(seed: int) -> None:
    dice = random.Random(seed)
    recordings = updates(40, dice)
    before = new_state()
    for each in recordings:
        record_and_pass(before, each, NOON)
    # The last of them came after the ledger was lost, or is one that nobody had decided on.
    adoption, after = Adoption(map(of, before.changes.decisions)), new_state()
    dice.shuffle(recordings)
    for each in recordings:
        record_and_pass(after, each, NOON, adoption.pass_over)
    adoption.finish(after, after.consumers.live(), NOON)
    assert {each.id for each in after.changes.decisions} == {each.id for each in before.changes.decisions}
    assert [set(after.queues.queued(n, None)) for n in (1, 2)] == [set(before.queues.queued(n, None)) for n in (1, 2)]
