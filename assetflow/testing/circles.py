"""Find flows that start each other in a circle, from the runs that were started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True)
class StartedRun:
    """A run that updates started.

    Attributes:
        name: the name of its flow.
        started_by: the runs that made the updates it consumed, oldest first.
    """

    name: str
    started_by: tuple[UUID, ...]


def circle_to(run: UUID, runs: Mapping[UUID, StartedRun]) -> list[str]:
    """Return the names of the flows in a circle that led to this run, or an empty list if there is no circle."""
    names: list[str] = []
    seen: set[UUID] = set()
    current: UUID | None = run
    while current is not None and current not in seen:
        seen.add(current)
        name = runs[current].name
        if name in names:
            return [name, *reversed(names[names.index(name) :])]
        names.append(name)
        # The run that completed the condition is the last one.
        current = next((each for each in reversed(runs[current].started_by) if each in runs), None)
    return []
