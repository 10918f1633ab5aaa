"""What a deploy would change, as data and in words. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import at, count, iso, some

# What every replay has to say about itself.
LIMITS = "A run that would be new makes no updates here, and one that would be gone still has its own."

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
class RunDiffers:
    """The first run in which two versions of a consumer differ.

    Attributes:
        what: the run would be gone, it would be new, or it would take other updates.
        words: why, as a clause.
    """

    at: datetime
    target_key: str | None
    what: Literal["gone", "new", "other"]
    words: str

    def as_json(self) -> dict[str, object]:
        return {"at": iso(self.at), "target_key": self.target_key, "what": self.what, "words": self.words}


@dataclass(frozen=True)
class Replayed:
    """A consumer that differs, over what was recorded.

    Attributes:
        since: from when on; `after_deploy` if that is its last deploy, and not the beginning that was asked for.
        before, after: how many runs it would have had as it is, and as it would be.
        missed_before, missed_after: how many deadlines it would have missed.
        first: the first run that differs; `None` if none does.
        note: why it is not replayed; empty if it is.
    """

    name: str
    since: datetime
    before: int = 0
    after: int = 0
    missed_before: int = 0
    missed_after: int = 0
    first: RunDiffers | None = None
    note: str = ""
    after_deploy: bool = False

    @property
    def words(self) -> str:
        """The numbers and the first difference, in a sentence."""
        if self.note:
            return f"{self.note}."
        runs = f"{count(self.after, 'run')} instead of {self.before}" if self.after != self.before else ""
        runs = runs or f"{count(self.after, 'run')}, as before"
        runs += f" (since its last deploy at {at(self.since)})" if self.after_deploy else ""
        missed = ""
        if self.missed_before or self.missed_after:
            missed = f", {count(self.missed_after, 'deadline')} missed instead of {self.missed_before}"
        if self.first is None:
            return f"{runs}{missed}{'' if self.before != self.after else '; no run differs'}."
        key = "" if self.first.target_key is None else f" [{self.first.target_key}]"
        how = {"gone": "would not have run", "new": "would have run", "other": "would have run with other updates"}
        why = f": {self.first.words}" if self.first.words else ""
        return f"{runs}{missed}; at {at(self.first.at)} it{key} {how[self.first.what]}{why}."

    def as_json(self) -> dict[str, object]:
        return {
            "consumer": self.name,
            "since": iso(self.since),
            "after_deploy": self.after_deploy,
            "before": self.before,
            "after": self.after,
            "missed_before": self.missed_before,
            "missed_after": self.missed_after,
            "first": None if self.first is None else self.first.as_json(),
            "note": self.note or None,
            "words": self.words,
        }


@dataclass(frozen=True)
class Comparison:
    """What a deploy would change.

    Attributes:
        unchanged: how many consumers stay as they are.
        problems: what could not be looked at, in sentences.
        replayed: the consumers that differ, over what was recorded; `None` without a replay.
    """

    consumers: Sequence[ConsumerChange] = ()
    runs: Sequence[RunAtOnce] = ()
    assets: Sequence[LostAsset] = ()
    unchanged: int = 0
    problems: Sequence[str] = ()
    replayed: Sequence[Replayed] | None = None

    @property
    def changes_something(self) -> bool:
        return bool(self.consumers or self.runs or self.assets)

    @property
    def lost_events(self) -> int:
        """How many queued events would be lost."""
        return sum(sum(each.superseded.values()) for each in self.consumers)

    @property
    def has_fewer_runs(self) -> bool:
        """True if a consumer would have had fewer runs over what was recorded."""
        return any(each.after < each.before for each in self.replayed or ())

    def as_json(self) -> dict[str, object]:
        return {
            "consumers": [each.as_json() for each in self.consumers],
            "runs": [each.as_json() for each in self.runs],
            "assets": [each.as_json() for each in self.assets],
            "unchanged": self.unchanged,
            "problems": list(self.problems),
            "replayed": None if self.replayed is None else [each.as_json() for each in self.replayed],
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
