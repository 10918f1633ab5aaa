"""Scenarios carried out on a real Prefect server: the same runs as the simulator says."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from assetflow.core.simulate import simulate
from assetflow.core.simulate.consumers import ConsumerSpec
from assetflow.core.simulate.steps import (
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

SCENARIOS = json.loads(Path(__file__).with_name("scenarios.json").read_text(encoding="utf-8"))


@pytest.mark.rule("4.3", "4.5")
@pytest.mark.prefect
@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["name"]) for each in SCENARIOS])
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


def perform(live: Stage, scenario: dict[str, Any]) -> None:
    read = read_scenario(scenario)
    for name, spec in read.consumers.items():
        deploy(live, name, spec)
    for number, step in enumerate(read.steps):
        carry_out(live, number, step)


def deploy(live: Stage, name: str, spec: ConsumerSpec) -> None:
    """Deploy a consumer; a schedule that cannot be written down is not deployed."""
    try:
        options, declares = spec.options(), spec.declares()
    except AssetflowError:
        return
    live.deploy(name, options, declares, paused=spec.paused)


def carry_out(live: Stage, number: int, step: Step) -> None:
    match step.action:
        case EventStep() as action:
            live.post_event(number, dict(step.source), action)
        case TaskStep(task=task) | AliasEventStep(task=task):
            live.end_task(number, task)
        case PauseStep(pause=consumer):
            live.switch(consumer, enabled=False)
        case ResumeStep(resume=consumer):
            live.switch(consumer, enabled=True)
        case RedeployStep(redeploy=consumers):
            for name, spec in consumers.items():
                deploy(live, name, spec)
        case RemoveStep(remove=consumer):
            live.remove(consumer)
        case TriggerStep(trigger=consumer):
            live.run_by_hand(consumer)
        case FinishStep(finish=consumer):
            live.finish(consumer)
        case AgainStep(again=consumer):
            live.retry(consumer)
        case DeleteQueuedStep(delete_queued=removal):
            live.remove_queued(removal.consumer, None if removal.asset is None else removal.asset())
        case TickStep() | AdvanceStep() | GetQueuedStep():
            pass  # The evaluator is always at work: there is nothing to do.
        case _:
            raise NotImplementedError(step.action)
