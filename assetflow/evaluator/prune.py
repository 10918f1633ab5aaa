"""Taking what is old out of a ledger and of Prefect.

First our artifacts are deleted in Prefect, then the events in the ledger: what the ledger does not know any more must
not be found again. For the same reason nothing is taken out that Prefect's event log may bring back when it is read
again. Whatever was done when the process is killed stays done, and the next one goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from assetflow.errors import AssetflowError, InvalidCall
from assetflow.evaluator import binding
from assetflow.evaluator.catch_up import Sweeps
from assetflow.ledger import Ledger
from assetflow.ledger.prune import Pruned
from assetflow.ledger.reader import Reader
from assetflow.prefect_io.old_artifacts import Kind, OldArtifacts, decision_of
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

CURSOR = "pruned"
# How far Prefect's log is read back, and as much again as clocks may differ.
SHORTEST = Sweeps().window + timedelta(days=1)
KINDS: tuple[Kind, ...] = ("recordings", "events of runs", "notes of runs")


@dataclass
class Report:
    """What was taken out, or would be.

    Attributes:
        before: what is older than this was looked at.
        rows: in the ledger.
        artifacts: in Prefect, by kind.
    """

    before: datetime
    rows: Pruned = field(default_factory=Pruned)
    artifacts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))


async def prune(older_than: timedelta, now: datetime, *, dry_run: bool) -> Report:
    """Take out of the ledger that the settings name, and of its Prefect, what is old and not needed any more.

    Parameters:
        older_than: at least eight days.
        dry_run: only count.

    Raises:
        InvalidCall: that is too short.
        LedgerForeign: Prefect belongs to another ledger.
        PrefectUnreachable, PrefectRefused, LedgerError
    """
    if older_than < SHORTEST:
        raise InvalidCall(
            f"{older_than.total_seconds() / 86400:g} days are too short: Prefect's log brings back what is younger",
            where="--older-than",
            fix=f"Give at least {SHORTEST.days}d",
        )
    with Reader.open() as reader:
        report = Report(_limit(reader, now - older_than))
        async with prefect_api() as api:
            await binding.check(api, reader.id)
            for kind in KINDS:
                report.artifacts[kind] = await _prune_artifacts(api, kind, reader, report.before, dry_run=dry_run)
        if dry_run:
            report.rows = await asyncio.to_thread(reader.prunable, report.before)
    if not dry_run:
        with Ledger.open() as ledger:
            report.rows = await asyncio.to_thread(_prune_ledger, ledger, report.before)
    return report


def _limit(reader: Reader, before: datetime) -> datetime:
    """The time before which nothing can come back that is taken out: the next look at Prefect goes that far."""
    read = reader.cursor("events")
    looked_at = reader.created if read is None else datetime.fromisoformat(str(read))
    rebuilding = reader.cursor("rebuild")
    if rebuilding is not None:
        looked_at = min(looked_at, datetime.fromisoformat(str(rebuilding)))
    return min(before, looked_at - SHORTEST)


def _prune_ledger(ledger: Ledger, before: datetime) -> Pruned:
    # Before the first row goes: whoever replays from an earlier time would record what is gone a second time.
    kept = ledger.reader.cursor(CURSOR)
    if kept is None or datetime.fromisoformat(str(kept)) < before:
        ledger.writer.set_cursor(CURSOR, before.isoformat())
    pruned, after = Pruned(), 0
    while True:
        step = ledger.writer.prune(before, after)
        pruned += step.pruned
        if step.upto is None:
            return pruned
        after = step.upto


async def _prune_artifacts(api: PrefectApi, kind: Kind, reader: Reader, before: datetime, *, dry_run: bool) -> int:
    """Delete what is not needed of one kind; how many that are."""
    choose = {"recordings": _recordings, "events of runs": _events_of_runs, "notes of runs": _notes}[kind]
    old, number = OldArtifacts(api, kind, _readable_before(reader, before)), 0
    async for page in old.pages():
        for artifact in choose(page, reader, before):
            number += 1
            if not dry_run:
                await old.delete(artifact)
    return number


def _readable_before(reader: Reader, before: datetime) -> datetime:
    """Artifacts that were not read yet are not old, whenever they were created."""
    read = reader.cursor("artifacts")
    return min(before, reader.created if read is None else datetime.fromisoformat(str(read)))


def _recordings(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Those of which the ledger has no event that is needed."""
    return _without(page, _recording_of, reader.needed_recordings, before)


def _events_of_runs(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Those whose runs are over, or unknown by now."""
    return _without(page, decision_of, reader.open_decisions, before)


def _notes(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Those of runs that are over."""
    runs = {str(each["id"]): UUID(str(each["flow_run_id"])) for each in page if each.get("flow_run_id")}
    over = reader.runs_that_are_over(runs.values(), before)
    return [each for each in page if runs.get(str(each["id"])) in over]


def _without(
    page: Collection[Json],
    number_of: Callable[[Json], UUID | None],
    needed_of: Callable[[Collection[UUID], datetime], set[UUID]],
    before: datetime,
) -> list[Json]:
    numbers: dict[Any, UUID | None] = {each["id"]: number_of(each) for each in page}
    needed = needed_of([number for number in numbers.values() if number is not None], before)
    return [each for each in page if numbers[each["id"]] not in needed]


def _recording_of(artifact: Json) -> UUID | None:
    """The recording in an artifact; one that cannot be read is refused, and nobody needs it."""
    try:
        return recording_from_artifact(artifact).id
    except AssetflowError:
        return None
