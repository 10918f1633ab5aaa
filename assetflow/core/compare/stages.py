"""What a deploy would change, told in stages: the terminal, Markdown and the page show the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from assetflow.core.compare.changes import ChangeKind, Comparison, ConsumerChange, Replayed
from assetflow.core.shapes import shape
from assetflow.core.values.words import at, count, some

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
