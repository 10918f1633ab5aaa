"""Simulate a scenario: carry out its steps in order, each at the time that the scenario gives it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from assetflow.core.rules.fold import Touched, pass_over
from assetflow.core.simulation.actions import attempt, deploy
from assetflow.core.simulation.answer import Answer, answer_of
from assetflow.core.simulation.scenario import Scenario, read_scenario
from assetflow.core.simulation.steps import TickStep
from assetflow.core.simulation.timed import run_timed
from assetflow.core.simulation.world import World
from assetflow.errors import AssetflowWarning


def simulate(scenario: Mapping[str, object], where: str = "") -> Answer:
    """Return what schedules would do with updates, without a server, a database or a clock.

    >>> from assetflow import simulate
    >>> answer = simulate({
    ...     "name": "both",
    ...     "consumers": {"report": {"all": ["s3://shop/orders", "s3://shop/customers"]}},
    ...     "steps": [{"event": "s3://shop/orders"}, {"event": "s3://shop/customers"}, {"tick": True}],
    ... })
    >>> [(run["step"], run["consumer"]) for run in answer["runs"]]
    [(2, 'report')]

    The contract's examples (`docs/contract.md`) are in this format. To simulate your own flows, use
    `assetflow simulate` on the command line.

    Parameters:
        scenario: a scenario as plain JSON data: `name`, `consumers`, `steps`.
        where: the file that it came from; errors name it.

    Returns:
        Plain JSON data: `name`, `runs`, `queued` and `pending_partitions`; `receipts`, `answers` and `errors` if there
        are any.

    Raises:
        InvalidScenario: the data does not have the format. The error names the place.
    """
    return run_scenario(read_scenario(scenario, where))


def run_scenario(scenario: Scenario) -> Answer:
    """Return the answer to a scenario."""
    with warnings.catch_warnings():
        # The author of a scenario does not need the warning that a password was cut off.
        warnings.simplefilter("ignore", AssetflowWarning)
        world = World(scenario.start)
        for name, spec in scenario.consumers.items():
            deploy(world, name, spec)
        if scenario.passes == "timed":
            run_timed(world, scenario)
        else:
            _run(world, scenario)
        return answer_of(world, scenario.name, receipts=scenario.receipts, timed=scenario.passes == "timed")


def _run(world: World, scenario: Scenario) -> None:
    for number, step in enumerate(scenario.steps):
        world.step, world.now = number, step.time
        touched = attempt(world, step.action)
        if scenario.passes == "live" or isinstance(step.action, TickStep):
            _pass(world, touched)


def _pass(world: World, touched: Touched) -> None:
    world.run_times()
    world.note_decisions(pass_over(world.state, touched, world.now))
