"""What holds for every scenario: the fold against a naive model, receipts, order, passes."""

from typing import Any

import pytest
from hypothesis import given, settings

from assetflow.core.rules.fold import Touched, pass_over
from assetflow.core.simulate import read_scenario, simulate
from assetflow.core.simulate.actions import carry_out, deploy
from assetflow.core.simulate.world import World
from assetflow.errors import AssetflowError
from tests.properties.naive import Naive
from tests.properties.scenarios import scenarios

Json = dict[str, Any]

MANY = settings(max_examples=150)


def simplified(scenario: Json) -> Json:
    """The simulator's answer in the naive model's form: events by their place in the ledger."""
    world, answer = walked(scenario), simulate(scenario)
    receipts: list[Json] = answer["receipts"]  # type: ignore[assignment]
    places = {event.id: event.sequence for event in world.state.changes.events}
    return {
        "runs": sorted(
            (
                {
                    "step": world.step_of_decision[d.id],
                    "consumer": world.names[d.consumer],
                    "key": d.target_key,
                    "events": [places[event.id] for event in d.events],
                }
                for d in world.state.changes.decisions
            ),
            key=lambda run: (run["step"], run["consumer"], run["key"] or ""),
        ),
        "waiting": sorted(
            (consumer.name, key or "", event.sequence)
            for consumer in world.consumers
            for key in world.state.queues.target_keys(consumer.id)
            for event in world.state.queues.queued(consumer.id, key)
        ),
        "receipts": [
            (r["event"], r["consumer"] or "", r.get("partition_key", ""), r["status"], r.get("step")) for r in receipts
        ],
    }


def walked(scenario: Json, *, check_idle: bool = False) -> World:
    read = read_scenario(scenario)
    world = World(read.start)
    for name, spec in read.consumers.items():
        deploy(world, name, spec)
    for number, step in enumerate(read.steps):
        world.step, world.now = number, step.time
        try:
            touched = carry_out(step.action, world)
        except AssetflowError:
            touched = {}
        if read.passes == "live" or step.source.get("tick"):
            world.note_decisions(pass_over(world.state, touched, world.now))
        if check_idle:
            everybody: Touched = {consumer.id: (consumer, None) for consumer in world.consumers}
            assert pass_over(world.state, everybody, world.now) == []
    return world


@pytest.mark.rule("3.5", "4.2", "4.3", "5.3", "5.5")
@MANY
@given(scenarios())
def test_fold_equals_the_naive_model(scenario: Json) -> None:
    assert simplified(scenario) == Naive(scenario).answer()


@MANY
@given(scenarios("live"))
def test_passes_over_the_touched_consumers_leave_nothing_to_a_pass_over_all(scenario: Json) -> None:
    walked(scenario, check_idle=True)


@pytest.mark.parametrize("gate", ["all", "any"])
def test_deep_nesting_does_not_blow_the_stack(gate: str) -> None:
    expression: Any = "s3://b/a"
    for level in range(400):
        expression = {("all" if level % 2 else gate): [expression]}
    answer = simulate(
        {"name": "deep", "passes": "live", "consumers": {"c": expression}, "steps": [{"event": "s3://b/a"}]}
    )
    assert len(answer["runs"]) == 1  # type: ignore[arg-type]
