"""Scenarios with `passes: live`, carried out on a real Prefect server: the same runs as the simulator says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from typing import Any, cast

import pytest

from assetflow.core.simulate import simulate
from assetflow.core.simulate.consumers import ConsumerSpec
from assetflow.core.simulate.steps import (
    Action,
    AdvanceStep,
    AgainStep,
    AliasEventStep,
    DeleteQueuedStep,
    EventStep,
    FinishStep,
    GetQueuedStep,
    PauseStep,
    RedeployStep,
    RemoveStep,
    ResumeStep,
    Step,
    TaskStep,
    TickStep,
    TriggerStep,
    read_scenario,
)
from assetflow.errors import AssetflowError
from tests.environment.postgres import chosen_database
from tests.environment.prefect_server import PrefectServer
from tests.live.stage import Stage, stage

HERE = Path(__file__).parent
CONFORMANCE = HERE.parent / "conformance"

# What a live run of a scenario cannot do in seconds, or does not know: partition keys, and times that pass.
NOT_HERE = ("partition", "cron", '"before"')


def scenarios() -> Iterator[dict[str, Any]]:
    files = [HERE / "scenarios.json", *sorted(CONFORMANCE.glob("*/*.json"))]
    for file in files:
        # Only the simulator knows freshness.
        if file.parent.name in ("direct", "freshness") or ".expected" in file.name:
            continue
        for scenario in json.loads(file.read_text(encoding="utf-8")):
            text = json.dumps(scenario)
            if scenario.get("passes") == "live" and not any(word in text for word in NOT_HERE):
                yield scenario


@pytest.mark.rule("4.3", "4.5")
@pytest.mark.prefect
@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["name"]) for each in scenarios()])
def test_live_runs_are_those_of_the_simulator(
    scenario: dict[str, Any], prefect_here: PrefectServer, tmp_path: Path
) -> None:
    expected = cast("dict[str, Any]", json.loads(json.dumps(simulate(scenario))))
    with chosen_database() as database, stage(prefect_here, database or tmp_path / "ledger.db") as live:
        perform(live, scenario)
        live.settle()
        runs, queued = live.runs(), live.queued()

    wanted: dict[str, list[Any]] = {consumer: [] for consumer in runs}
    for run in expected["runs"]:
        wanted[run["consumer"]].append(run["events"])
    assert runs == wanted
    assert queued == expected["queued"]


def test_there_are_a_few_dozen() -> None:
    found = [each["name"] for each in scenarios()]
    assert len(found) >= 36
    assert len(found) == len(set(found))


def perform(live: Stage, scenario: dict[str, Any]) -> None:
    read = read_scenario(scenario)
    for name, spec in read.consumers.items():
        deploy(live, name, spec)
    for number, step in enumerate(read.steps):
        carry_out(step.action, live, number, step)


def deploy(live: Stage, name: str, spec: ConsumerSpec) -> None:
    """Deploy a consumer; a schedule that cannot be written down is not deployed."""
    try:
        options, declares = spec.options(), spec.declares()
    except AssetflowError:
        return
    live.deploy(name, options, declares, paused=spec.paused)


@singledispatch
def carry_out(action: Action, live: Stage, number: int, step: Step) -> None:
    raise NotImplementedError(action)


@carry_out.register
def _(action: EventStep, live: Stage, number: int, step: Step) -> None:
    live.post_event(number, dict(step.source), action)


@carry_out.register
def _(action: TaskStep | AliasEventStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.end_task(number, action.task)


@carry_out.register
def _(action: PauseStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.switch(action.pause, enabled=False)


@carry_out.register
def _(action: ResumeStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.switch(action.resume, enabled=True)


@carry_out.register
def _(action: RedeployStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    for name, spec in action.redeploy.items():
        deploy(live, name, spec)


@carry_out.register
def _(action: RemoveStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.remove(action.remove)


@carry_out.register
def _(action: TriggerStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.run_by_hand(action.trigger)


@carry_out.register
def _(action: FinishStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.finish(action.finish)


@carry_out.register
def _(action: AgainStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    live.retry(action.again)


@carry_out.register
def _(action: DeleteQueuedStep, live: Stage, number: int, step: Step) -> None:  # noqa: ARG001
    removal = action.delete_queued
    live.remove_queued(removal.consumer, None if removal.asset is None else removal.asset())


@carry_out.register(TickStep)
@carry_out.register(AdvanceStep)
@carry_out.register(GetQueuedStep)
def _(action: Action, live: Stage, number: int, step: Step) -> None:
    """The evaluator is always at work: there is nothing to do."""
