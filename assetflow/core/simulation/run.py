"""Simulating: the steps of a scenario one after the other, with time as data and no clock."""

from __future__ import annotations

import warnings

from assetflow.core.fold import Touched, pass_over
from assetflow.core.simulation.actions import carry_out, deploy
from assetflow.core.simulation.answer import Answer, answer_of
from assetflow.core.simulation.scenario import Scenario, read_scenario
from assetflow.core.simulation.steps import TickStep
from assetflow.core.simulation.world import TimeRun, World
from assetflow.errors import AssetflowError, AssetflowWarning


def simulate(scenario: object, where: str = "") -> Answer:
    """What schedules would do with events.

    Parameters:
        scenario: plain data in the format that the documentation of scenarios describes.
        where: the file it came from, for messages.

    Returns:
        The answer as plain data: runs, queued, pending_partitions and, if there are any, receipts, answers, errors.

    Raises:
        InvalidScenario: the data is not in the format.
    """
    return run_scenario(read_scenario(scenario, where))


def run_scenario(scenario: Scenario) -> Answer:
    """The answer to a scenario that was read already."""
    with warnings.catch_warnings():
        # A password that was cut from a URI is no news to the author of a scenario.
        warnings.simplefilter("ignore", AssetflowWarning)
        world = World(scenario.start)
        for name, spec in scenario.consumers.items():
            deploy(world, name, spec)
        for number, step in enumerate(scenario.steps):
            world.step, world.now = number, step.time
            touched = _carry_out(world, step.action)
            if scenario.passes == "live" or isinstance(step.action, TickStep):
                _pass(world, touched)
        return answer_of(world, scenario.name, receipts=scenario.receipts)


def _carry_out(world: World, action: object) -> Touched:
    try:
        return carry_out(action, world)
    except AssetflowError as error:
        world.fail(error)
        return {}


def _pass(world: World, touched: Touched) -> None:
    assert world.step is not None
    for consumer in world.consumers:
        world.time_runs += [TimeRun(world.step, consumer.id, tick) for tick in world.timers.due(consumer, world.now)]
    world.note_decisions(pass_over(world.book, touched, world.now))
