"""List runs that have ended, each with why it ran, and whether what failed was made good. Contract 4.8, 4.9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from uuid import UUID

from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.shapes import shape
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.words import some
from assetflow.ledger.read.reader import Reader

_OTHERS = {"time": "its timetable", "hand": "started by hand", "decision": "a decision that was pruned"}


@shape
class ListedRun(EndedRun):
    """A run that has ended, as lists show it."""

    because: str = ""
    """Why it ran, in words."""
    made_good: bool | None = None
    """Whether something made it good since; null for a run that did not fail."""


def list_runs(
    reader: Reader,
    *,
    failed: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    flow: str | None = None,
    target_key: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[ListedRun]:
    """Return runs that have ended, newest first; the parameters are those of `EndedRunReader.find`."""
    of = {"failed": failed, "since": since, "until": until, "flow": flow, "target_key": target_key}
    found = reader.ended_runs.find(**of, before=before, limit=limit)  # type: ignore[arg-type]
    return with_reasons(reader, found)


def with_reasons(reader: Reader, found: Sequence[EndedRun]) -> list[ListedRun]:
    """Return runs with why they ran, and whether what failed was made good."""
    reasons = _reasons(reader, found)
    return [
        ListedRun(
            **{each.name: getattr(run, each.name) for each in fields(run)},  # type: ignore[arg-type]
            because=reasons.get(run.decision) or _OTHERS[run.started_by],
            made_good=reader.ended_runs.is_made_good(run) if run.has_failed else None,
        )
        for run in found
    ]


def _reasons(reader: Reader, found: Sequence[EndedRun]) -> Mapping[UUID | None, str]:
    """Return why decisions were made, by their ids."""
    decisions = reader.decisions.with_ids(run.decision for run in found if run.decision is not None)
    consumed = reader.decisions.consumed_assets([each.number for each in decisions])
    return {
        each.id: some([asset.shown for asset in consumed.get(each.number, ())])
        or causes_in_words(each.because)
        or each.kind
        for each in decisions
    }
