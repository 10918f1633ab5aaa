"""What a deploy would change, as data and in words. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import count, some

ChangeKind = Literal["added", "changed", "removed", "renamed", "refused"]


@dataclass(frozen=True)
class ConsumerChange:
    """What a deploy would do to one consumer.

    Attributes:
        name: `flow/deployment`.
        before, after: its schedule and options in words; `None` if it has none.
        was: its name before, if it is renamed.
        refused: why the deploy would be refused; then the schedule before stays (4.4).
        superseded: how many queued events of each asset it would lose (4.4).
        mapped_anew: how many queued events would be queued under other keys (5.6).
        automation: whether its automation in Prefect would be made or removed.
        begins_eager: it is new and Eager, so it runs as soon as what it reads exists (8.5).
    """

    kind: ChangeKind
    name: str
    before: str | None = None
    after: str | None = None
    was: str = ""
    refused: str = ""
    superseded: Mapping[str, int] = field(default_factory=dict[str, int])
    mapped_anew: int = 0
    automation: Literal["", "made", "removed"] = ""
    begins_eager: bool = False

    @property
    def notes(self) -> list[str]:
        """What follows for its queue and its automation, in sentences."""
        found: list[str] = []
        if self.refused:
            found.append(f"The deploy would be refused: {self.refused}")
        if self.was:
            found.append(f"{self.was} runs beside it until its deployment is deleted.")
        if self.superseded:
            lost = sum(self.superseded.values())
            of = some([f"{number} of {uri}" for uri, number in self.superseded.items()])
            found.append(f"{count(lost, 'queued event')} would be lost: {of}.")
        if self.mapped_anew:
            found.append(f"{count(self.mapped_anew, 'queued event')} would be queued under other keys.")
        if self.begins_eager:
            found.append("It would run at once if what it reads exists.")
        if self.automation:
            found.append(f"Its automation in Prefect would be {self.automation}.")
        return found

    def as_json(self) -> dict[str, object]:
        return {
            "change": self.kind,
            "consumer": self.name,
            "before": self.before,
            "after": self.after,
            "was": self.was or None,
            "refused": self.refused or None,
            "superseded": dict(self.superseded),
            "mapped_anew": self.mapped_anew,
            "automation": self.automation or None,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class RunAtOnce:
    """A run that the deploy itself would start.

    Attributes:
        words: why, as a clause: "with 2 updates", "its code has another version".
    """

    consumer: str
    target_key: str | None
    words: str

    def as_json(self) -> dict[str, object]:
        return {"consumer": self.consumer, "target_key": self.target_key, "words": self.words}


@dataclass(frozen=True)
class LostAsset:
    """An asset or alias that no flow would update any more, or on which none would run any more."""

    value: str
    lost: Literal["producer", "consumer"]

    @property
    def words(self) -> str:
        return f"{self.value} loses its last {self.lost}."

    def as_json(self) -> dict[str, object]:
        return {"asset": self.value, "lost": self.lost}


@dataclass(frozen=True)
class Comparison:
    """What a deploy would change.

    Attributes:
        unchanged: how many consumers stay as they are.
        problems: what could not be looked at, in sentences.
    """

    consumers: Sequence[ConsumerChange] = ()
    runs: Sequence[RunAtOnce] = ()
    assets: Sequence[LostAsset] = ()
    unchanged: int = 0
    problems: Sequence[str] = ()

    @property
    def changes_something(self) -> bool:
        return bool(self.consumers or self.runs or self.assets)

    @property
    def lost_events(self) -> int:
        """How many queued events would be lost."""
        return sum(sum(each.superseded.values()) for each in self.consumers)

    def as_json(self) -> dict[str, object]:
        return {
            "consumers": [each.as_json() for each in self.consumers],
            "runs": [each.as_json() for each in self.runs],
            "assets": [each.as_json() for each in self.assets],
            "unchanged": self.unchanged,
            "problems": list(self.problems),
        }


def options_in_words(options: ConsumerOptions) -> str:
    """Return all that says how a consumer runs, so that two that differ have different words."""
    parts = [options.describe()]
    if (parting := options.schedule.partitioning) is not None:
        parts.append(f"by {parting.default.describe()}")
        parts += [f"{target.label} by {mapper.describe()}" for target, mapper in parting.mappers]
    parts += ["coalesce"] if options.coalesce else []
    parts += ["while_paused keep"] if options.while_paused == "keep" else []
    return "; ".join(parts)
