"""What a deploy would change, as data. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal

from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import at, count, some

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


# What every replay has to say about itself.
LIMITS = "A run that would be new makes no updates here, and one that would be gone still has its own."
# The cursor of the ledger that holds the comparison that the page shows.
CURSOR = "diff"

Sign = ChangeKind | Literal["unread", "runs", "lost", "replayed"]
_HOW = {"gone": "would not have run", "new": "would have run", "other": "would have run with other updates"}


@shape
class Line:
    """What a stage says of one consumer, asset or file.

    Attributes:
        words: the sentence whose subject is `name`.
        before, after: what stands side by side, if something does.
        notes: what follows, in sentences.
    """

    sign: Sign
    name: str
    words: str
    before: str | None = None
    after: str | None = None
    notes: Sequence[str] = ()


@shape
class Stage:
    """Some lines with a heading, and a sentence below them; without a heading, the sentence alone."""

    title: str
    lines: Sequence[Line]
    note: str = ""


@shape
class ShownDiff:
    """A comparison that was kept for the page.

    Attributes:
        folder: the folder of the project.
        by: who made it.
    """

    made: datetime
    folder: str
    by: str
    stages: Sequence[Stage]


def stages_of(found: Comparison) -> Iterator[Stage]:
    """Yield the stages of a comparison; those about nothing are left out."""
    runs = ((_keyed(each.consumer, each.target_key), f"would run at once: {each.words}.") for each in found.runs)
    lost = ((each.asset, f"loses its last {each.lost}.") for each in found.assets)
    replayed = ((each.consumer, replay_in_words(each)) for each in found.replayed or ())
    given = (
        Stage("Cannot be looked at", [Line("unread", *each) for each in found.problems.items()]),
        Stage("Consumers", list(map(_change, found.consumers))),
        Stage("Runs that the deploy starts", [Line("runs", *each) for each in runs]),
        Stage("Assets", [Line("lost", *each) for each in lost]),
        Stage("What was recorded, with both versions", [Line("replayed", *each) for each in replayed], LIMITS),
    )
    yield from (each for each in given if each.lines)
    if not found.changes_something:
        yield Stage("", (), "Nothing would change.")
    elif found.unchanged:
        yield Stage("", (), f"{count(found.unchanged, 'consumer')} would not change.")


def _keyed(name: str, key: str | None) -> str:
    return name if key is None else f"{name} [{key}]"


def _change(change: ConsumerChange) -> Line:
    name = f"{change.consumer} (was {change.was})" if change.was else change.consumer
    same = change.before == change.after
    return Line(change.kind, name, change.kind, None if same else change.before, change.after, list(_notes(change)))


def _notes(change: ConsumerChange) -> Iterator[str]:
    """Yield what follows for its queue and its automation."""
    if change.refused:
        yield ". ".join(filter(None, (f"The deploy would be refused: {change.refused}", change.fix.rstrip(".")))) + "."
    if change.was:
        yield f"{change.was} runs beside it until its deployment is deleted."
    if change.superseded:
        of = some([f"{number} of {uri}" for uri, number in change.superseded.items()])
        yield f"{count(sum(change.superseded.values()), 'queued event')} would be lost: {of}."
    if change.mapped_anew:
        yield f"{count(change.mapped_anew, 'queued event')} would be queued under other keys."
    if change.begins_eager:
        yield "It would run at once if what it reads exists."
    if change.automation:
        yield f"Its automation in Prefect would be {change.automation}."


def replay_in_words(replayed: Replayed) -> str:
    """Return the numbers and the first difference, in a sentence."""
    if replayed.note:
        return f"{replayed.note}."
    same = replayed.before == replayed.after
    words = count(replayed.after, "run") + (", as before" if same else f" instead of {replayed.before}")
    words += f" (since its last deploy at {at(replayed.since)})" if replayed.after_deploy else ""
    if replayed.missed_before or replayed.missed_after:
        words += f", {count(replayed.missed_after, 'deadline')} missed instead of {replayed.missed_before}"
    if (first := replayed.first) is None:
        return f"{words}{'; no run differs' if same else ''}."
    why = f": {first.words}" if first.words else ""
    return f"{words}; at {at(first.at)} {_keyed('it', first.target_key)} {_HOW[first.what]}{why}."
