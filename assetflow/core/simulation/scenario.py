"""A scenario: consumers, and steps with their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from assetflow.core.schedules import ConsumerOptions
from assetflow.core.simulation.expressions import ConsumerSpec, read_consumer
from assetflow.core.simulation.reading import (
    as_bool,
    as_choice,
    as_list,
    as_object,
    as_text,
    as_time,
    is_object,
    refuse,
)
from assetflow.core.simulation.steps import Action, read_action, seconds_of

Passes = Literal["tick", "live"]

_KEYS = ("name", "why", "start", "receipts", "passes", "consumers", "steps")
_DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN_STEPS = timedelta(seconds=60)


@dataclass(frozen=True)
class Step:
    """One step: when it happens, what, and how it was written."""

    time: datetime
    action: Action
    source: Mapping[str, object]


@dataclass(frozen=True)
class Scenario:
    """What is simulated.

    Attributes:
        start: when the consumers are deployed, in the order of the file.
        receipts: whether the answer lists what became of each event.
        passes: where passes happen: at `tick` steps, or after every step as in the running system (4.3).
    """

    name: str
    start: datetime
    consumers: Mapping[str, ConsumerSpec]
    steps: tuple[Step, ...]
    receipts: bool = False
    passes: Passes = "tick"


def read_scenario(value: object, where: str = "") -> Scenario:
    """The scenario that plain data describes.

    Raises:
        InvalidScenario: the data is not in the format; the error names scenario and step.
    """
    name = value.get("name") if is_object(value) else None
    place = f"{where}: scenario {name!r}" if where else f"scenario {name!r}"
    data = as_object(value, place, _KEYS)
    start = as_time(data["start"], f"{place}, start") if "start" in data else _DEFAULT_START
    consumers = as_object(data.get("consumers", {}), f"{place}, consumers")
    return Scenario(
        name=as_text(data.get("name"), f"{place}, name"),
        start=start,
        consumers={key: read_consumer(spec, f"{place}, consumer {key!r}") for key, spec in consumers.items()},
        steps=tuple(read_steps(as_list(data.get("steps", []), f"{place}, steps"), start, place)),
        receipts=as_bool(data.get("receipts", False), f"{place}, receipts"),
        passes=cast("Passes", as_choice(data.get("passes", "tick"), ("tick", "live"), f"{place}, passes")),
    )


def read_scenarios(value: object, where: str = "") -> list[Scenario]:
    """The scenarios of a file's data: those of a list, or the one that it is. Raises as `read_scenario`."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [read_scenario(one, where) for one in values]


def scenario_of_flows(name: str, flows: Mapping[str, ConsumerOptions], steps: object, where: str = "") -> Scenario:
    """The scenario of flows that are deployed as they are, with a list of steps, and passes as in the running system.

    Raises:
        InvalidScenario: the steps are not in the format.
    """
    found = read_steps(as_list(steps, where), _DEFAULT_START, where)
    consumers = {flow: ConsumerSpec(lambda options=options: options) for flow, options in flows.items()}
    return Scenario(name, _DEFAULT_START, consumers, tuple(found), receipts=True, passes="live")


def read_steps(steps: Iterable[object], start: datetime, where: str) -> Iterable[Step]:
    """The steps with their times: a minute apart unless they say otherwise, and never backwards."""
    now = start
    for number, value in enumerate(steps):
        place = f"{where}, step {number}"
        data = as_object(value, place)
        action = read_action(data, place)
        time = _time_of(data, now, place)
        if time < now:
            refuse(f"time goes backwards, from {now:%Y-%m-%dT%H:%M:%SZ} to {time:%Y-%m-%dT%H:%M:%SZ}", place)
        now = time
        yield Step(now, action, data)


def _time_of(data: Mapping[str, object], now: datetime, where: str) -> datetime:
    at = as_time(data["at"], f"{where}, at") if "at" in data else None
    try:
        if "advance" in data:
            return (at or now) + timedelta(seconds=seconds_of(data, where))
        return at or now + _BETWEEN_STEPS
    except (OverflowError, ValueError):
        refuse("the clock runs past the year 9999", where)
