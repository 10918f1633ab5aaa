"""Simulate a scenario: carry out its steps in order, each at the time that the scenario gives it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from assetflow.core.simulate import freshness_actions as _  # noqa: F401  registers its steps
from assetflow.core.simulate.actions import attempt, deploy, in_order
from assetflow.core.simulate.answer import Answer, answer_of
from assetflow.core.simulate.lasting import end_next
from assetflow.core.simulate.run import run_timed
from assetflow.core.simulate.scenario import Scenario, read_scenario
from assetflow.core.simulate.steps import TickStep
from assetflow.core.simulate.world import World
from assetflow.core.simulation.passes import full_pass
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
        InvalidScenario: the data does not have the format, or flows keep each other running without pause. The error
            names the place, or the flows.
    """
    return run_scenario(read_scenario(scenario, where))


def run_scenario(scenario: Scenario) -> Answer:
    """Return the answer to a scenario."""
    with warnings.catch_warnings():
        # The author of a scenario does not need the warning that a password was cut off.
        warnings.simplefilter("ignore", AssetflowWarning)
        world = World(scenario.start)
        for name, spec in in_order(scenario.consumers):
            deploy(world, name, spec)
        if scenario.passes in ("live", "timed"):
            run_timed(world, scenario)
        else:
            _run(world, scenario)
        return answer_of(world, scenario.name, receipts=scenario.receipts, timed=scenario.passes == "timed")


def _run(world: World, scenario: Scenario) -> None:
    for number, step in enumerate(scenario.steps):
        world.step = number
        while end_next(world, step.time) is not None:
            pass
        world.now = step.time
        touched = attempt(world, step.action)
        if isinstance(step.action, TickStep):
            full_pass(world, touched)
        while end_next(world, step.time) is not None:
            pass
