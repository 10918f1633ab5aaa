"""What a deploy would change, as data. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal

from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.schedules import ConsumerOptions

ChangeKind = Literal["added", "changed", "removed", "renamed", "refused"]


@shape
class ConsumerChange:
    """What a deploy would do to one consumer."""

    kind: ChangeKind
    consumer: str
    """`flow/deployment`."""
    before: str | None = None
    """Its schedule and options in words; null if it has none."""
    after: str | None = None
    was: TextOrNull = ""
    """Its name before, if it is renamed."""
    refused: TextOrNull = ""
    """Why the deploy would be refused; then the schedule before stays (4.4)."""
    fix: TextOrNull = ""
    superseded: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many queued events of each asset it would lose (4.4)."""
    mapped_anew: int = 0
    """How many queued events would be queued under other keys (5.6)."""
    automation: TextOrNull = ""
    """Whether its automation in Prefect would be `made` or `removed`."""
    begins_eager: bool = False
    """It is new and Eager, so it runs as soon as what it reads exists (8.5)."""


@shape
class RunAtOnce:
    """A run that the deploy itself would start."""

    consumer: str
    target_key: str | None
    words: str
    """Why, as a clause: "with 2 updates", "its code has another version"."""


@shape
class LostAsset:
    """An asset or alias that no flow would update any more, or on which none would run any more."""

    asset: str
    lost: Literal["producer", "consumer"]


@shape
class RunDiffers:
    """The first run in which two versions of a consumer differ."""

    at: datetime
    target_key: str | None
    what: Literal["gone", "new", "other"]
    """The run would be gone, it would be new, or it would take other updates."""
    words: str
    """Why, as a clause."""


@shape
class Replayed:
    """A consumer that differs, over what was recorded."""

    consumer: str
    since: datetime
    """From when on."""
    before: int = 0
    """How many runs it would have had as it is, and as it would be."""
    after: int = 0
    missed_before: int = 0
    """How many deadlines it would have missed."""
    missed_after: int = 0
    first: RunDiffers | None = None
    """The first run that differs; null if none does."""
    note: TextOrNull = ""
    """Why it is not replayed."""
    after_deploy: bool = False
    """It begins with its last deploy, which came later than the beginning that was asked for."""


@shape
class Comparison:
    """What a deploy would change."""

    consumers: Sequence[ConsumerChange] = ()
    runs: Sequence[RunAtOnce] = ()
    assets: Sequence[LostAsset] = ()
    unchanged: int = 0
    """How many consumers stay as they are."""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """What could not be looked at: a file, or a file with its flow, and why."""
    replayed: Sequence[Replayed] | None = None
    """The consumers that differ, over what was recorded; null without a replay."""

    @property
    def changes_something(self) -> bool:
        return bool(self.consumers or self.runs or self.assets)

    @property
    def loses_events(self) -> bool:
        """True if queued events would be lost."""
        return any(each.superseded for each in self.consumers)

    @property
    def has_fewer_runs(self) -> bool:
        """True if a consumer would have had fewer runs over what was recorded."""
        return any(each.after < each.before for each in self.replayed or ())


def options_in_words(options: ConsumerOptions) -> str:
    """Return all that says how a consumer runs, so that two that differ have different words."""
    parts = [options.describe()]
    if (parting := options.schedule.partitioning) is not None:
        parts.append(f"by {parting.default.describe()}")
        parts += [f"{target.label} by {mapper.describe()}" for target, mapper in parting.mappers]
    parts += ["coalesce"] if options.coalesce else []
    parts += ["while_paused keep"] if options.while_paused == "keep" else []
    return "; ".join(parts)
