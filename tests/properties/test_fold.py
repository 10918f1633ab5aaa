"""What holds for every scenario: the fold against a naive model, receipts, order, passes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules.fold import Touched, pass_over
from assetflow.core.simulate import read_scenario, simulate
from assetflow.core.simulate.actions import carry_out, deploy
from assetflow.core.simulate.world import World
from assetflow.errors import AssetflowError
from tests.properties.naive import Naive
from tests.properties.scenarios import KEYS, URIS, expressions, scenarios

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


@pytest.mark.rule("3.5", "4.2", "5.5")
@MANY
@given(scenarios())
def test_fold_equals_the_naive_model(scenario: Json) -> None:
    assert simplified(scenario) == Naive(scenario).answer()


@MANY
@given(scenarios("live"))
def test_passes_over_the_touched_consumers_leave_nothing_to_a_pass_over_all(scenario: Json) -> None:
    walked(scenario, check_idle=True)


@given(expressions, st.lists(st.sampled_from(URIS), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_order_and_duplicates_do_not_matter_for_whether_a_run_comes(expr: Any, uris: list[str], random: Any) -> None:
    shuffled = [*uris, random.choice(uris)]
    random.shuffle(shuffled)

    def runs(order: list[str]) -> int:
        events = [{"event": uri} for uri in order]
        answer = simulate({"name": "s", "consumers": {"c": expr}, "steps": [*events, {"tick": True}]})
        return len(answer["runs"])  # type: ignore[arg-type]

    assert runs(uris) == runs(shuffled)


@pytest.mark.rule("4.3")
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(KEYS)), max_size=10), st.randoms(use_true_random=False))
def test_interleaving_independent_updates_changes_no_run(updates: list[tuple[bool, str]], random: Any) -> None:
    """Events of two assets that share no consumer: only the order within each asset counts."""
    left = [{"event": "s3://b/a", "partition_key": key} for first, key in updates if first]
    right = [{"event": "s3://b/b", "partition_key": key} for first, key in updates if not first]
    consumers = {"l": {"partitioned": {"assets": "s3://b/a"}}, "r": {"partitioned": {"assets": "s3://b/b"}}}

    def runs(steps: list[Json]) -> list[Json]:
        answer = simulate({"name": "s", "passes": "live", "consumers": consumers, "steps": steps})
        found: list[Json] = answer["runs"]  # type: ignore[assignment]
        return sorted(({"consumer": r["consumer"], "key": r["partition_key"]} for r in found), key=str)

    mixed: list[Json] = []
    waiting = [list(left), list(right)]
    while any(waiting):
        mixed.append(random.choice([queue for queue in waiting if queue]).pop(0))
    assert runs(mixed) == runs([*left, *right])


@pytest.mark.parametrize("gate", ["all", "any"])
def test_deep_nesting_does_not_blow_the_stack(gate: str) -> None:
    expression: Any = "s3://b/a"
    for level in range(400):
        expression = {("all" if level % 2 else gate): [expression]}
    answer = simulate(
        {"name": "deep", "passes": "live", "consumers": {"c": expression}, "steps": [{"event": "s3://b/a"}]}
    )
    assert len(answer["runs"]) == 1  # type: ignore[arg-type]


@pytest.mark.timeout(30)
def test_width_of_5000_assets_does_not_blow_the_clock() -> None:
    uris = [f"s3://b/{number}" for number in range(5000)]
    steps = [{"event": uri} for uri in uris]
    consumers = {"c": {"all": uris}, "d": {"all": [{"any": uris[:2500]}, uris[-1]]}}

    answer = simulate({"name": "wide", "passes": "live", "consumers": consumers, "steps": steps})

    runs: list[Json] = answer["runs"]  # type: ignore[assignment]
    assert [(run["step"], run["consumer"], len(run["events"])) for run in runs] == [
        (4999, "c", 5000),
        (4999, "d", 2501),
    ]
