"""Read scenarios: consumers, and steps with their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from assetflow.core.simulate.consumers import ConsumerSpec, read_consumer
from assetflow.core.simulate.reading import as_list, as_object, is_object, need, read, refuse, short
from assetflow.core.simulate.steps import (
    TIMED_ONLY,
    WHILE_STOPPED,
    Action,
    AdvanceStep,
    RedeployStep,
    StartStep,
    StopStep,
    read_action,
)
from assetflow.core.values.schedules import ConsumerOptions

Passes = Literal["tick", "live", "timed"]

_KEYS = ("name", "why", "dagster", "start", "receipts", "passes", "consumers", "steps")
_DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN_STEPS = timedelta(seconds=60)


@dataclass(frozen=True)
class Step:
    """One step: its time, its action, and the data from which it was read."""

    time: datetime
    action: Action
    source: Mapping[str, object]


@dataclass(frozen=True)
class Scenario:
    """A scenario to simulate.

    Attributes:
        start: when the consumers are deployed, UTC.
        consumers: the consumers by name, in the order in which they are deployed.
        receipts: the answer has the receipts.
        passes: "tick": there is a pass at each `tick` step. "live": there is one after every step, as in the running
            system (contract 4.3). "timed": the clock runs between the steps, too (contract 9.6).
    """

    name: str
    start: datetime
    consumers: Mapping[str, ConsumerSpec]
    steps: tuple[Step, ...]
    receipts: bool = False
    passes: Passes = "tick"


def read_scenario(value: object, where: str = "") -> Scenario:
    """Return the scenario in plain JSON data.

    Parameters:
        where: the file that the data came from, which errors name.

    Raises:
        InvalidScenario: the data does not have the format. The error names the scenario and the step.
    """
    name = value.get("name") if is_object(value) else None
    called = "scenario" if name is None else f"scenario {short(name)}"
    place = f"{where}: {called}" if where else called
    data = as_object(value, place, _KEYS)
    need(data, ("name",), place)
    start: datetime = read(datetime, data.get("start", _DEFAULT_START), f"{place}, start")
    consumers = as_object(data.get("consumers", {}), f"{place}, consumers")
    scenario = Scenario(
        name=read(str, data["name"], f"{place}, name"),
        start=start,
        consumers={key: read_consumer(spec, f"{place}, consumer {key!r}") for key, spec in consumers.items()},
        steps=tuple(read_steps(as_list(data.get("steps", []), f"{place}, steps"), start, place)),
        receipts=read(bool, data.get("receipts", False), f"{place}, receipts"),
        passes=read(Passes, data.get("passes", "tick"), f"{place}, passes"),
    )
    _check_timed(scenario, place)
    return scenario


def _check_timed(scenario: Scenario, where: str) -> None:
    """Refuse what needs a clock in a scenario without one, and what cannot happen while the evaluator is down."""
    specs = list(scenario.consumers.values())
    stopped = False
    for number, step in enumerate(scenario.steps):
        place = f"{where}, step {number}"
        if isinstance(step.action, RedeployStep):
            specs += step.action.redeploy.values()
        if isinstance(step.action, TIMED_ONLY) and scenario.passes != "timed":
            refuse("this step needs a clock", place, 'Write "passes": "timed"')
        if isinstance(step.action, StartStep) != stopped and isinstance(step.action, StartStep | StopStep):
            refuse("the evaluator is stopped and started in turn", place)
        if stopped and not isinstance(step.action, (*WHILE_STOPPED, StartStep)):
            refuse("while the evaluator is down, only updates come and time passes", place)
        stopped = isinstance(step.action, StopStep) or (stopped and not isinstance(step.action, StartStep))
    if scenario.passes != "timed" and any(spec.is_timed for spec in specs):
        refuse("a consumer needs a clock", where, 'Write "passes": "timed"')


def read_scenarios(value: object, where: str = "") -> list[Scenario]:
    """Return the scenarios in the data of a file: a list of scenarios, or one. Raises as `read_scenario` does."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [read_scenario(one, where) for one in values]


def scenario_of_flows(name: str, flows: Mapping[str, ConsumerOptions], steps: object, where: str = "") -> Scenario:
    """Return the scenario of existing flows, with passes as in the running system, and with its clock if they need it.

    Parameters:
        flows: the name and the options of each flow.
        steps: a list of steps, as in a scenario.
        where: the file that the steps came from, which errors name.

    Raises:
        InvalidScenario: the steps do not have the format.
    """
    found = tuple(read_steps(as_list(steps, where), _DEFAULT_START, where))
    timed = any(options.is_timed for options in flows.values()) or any(isinstance(s.action, TIMED_ONLY) for s in found)
    consumers = {flow: ConsumerSpec(lambda options=options: options) for flow, options in flows.items()}
    scenario = Scenario(name, _DEFAULT_START, consumers, found, receipts=True, passes="timed" if timed else "live")
    _check_timed(scenario, where)
    return scenario


def read_steps(steps: Iterable[object], start: datetime, where: str) -> Iterable[Step]:
    """Yield the steps with their times: a minute apart unless the step gives a time, and never backwards."""
    now = start
    for number, value in enumerate(steps):
        place = f"{where}, step {number}"
        action = read_action(value, place)
        time = _time_of(action, now, place)
        if time < now:
            refuse(f"time goes backwards, from {now:%Y-%m-%dT%H:%M:%SZ} to {time:%Y-%m-%dT%H:%M:%SZ}", place)
        now = time
        yield Step(now, action, cast("Mapping[str, object]", value))


def _time_of(action: Action, now: datetime, where: str) -> datetime:
    try:
        if isinstance(action, AdvanceStep):
            return (action.at or now) + timedelta(seconds=action.advance)
        return action.at or now + _BETWEEN_STEPS
    except (OverflowError, ValueError):
        refuse("the clock runs past the year 9999", where)
