"""Remove old data from a ledger and from its Prefect.

Delete assetflow's artifacts in Prefect first, then the events in the ledger: a sweep must not find an update that the
ledger has forgotten. For the same reason, remove nothing that the next sweep of Prefect's event log may bring back.
After a kill, call it again: it goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from assetflow.errors import AssetflowError, InvalidCall
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.process import binding
from assetflow.ledger import Ledger
from assetflow.ledger.read.pruning import Pruned
from assetflow.ledger.read.reader import Reader
from assetflow.prefect_io.logs import Kind, OldArtifacts, decision_of
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

# The cursor up to which the ledger was pruned.
CURSOR = "pruned"
# How far back a sweep reads Prefect's log, and how much clocks may differ.
SHORTEST = Sweeps().full_overlap + timedelta(days=1)
KINDS: tuple[Kind, ...] = ("recordings", "events of runs", "notes of runs")


@dataclass
class PruneReport:
    """The numbers of rows and artifacts that a prune has removed, or would remove.

    Attributes:
        before: only older data was looked at.
        rows: the numbers of rows in the ledger.
        artifacts: the number of artifacts in Prefect, by kind.
    """

    before: datetime
    rows: Pruned = field(default_factory=Pruned)
    artifacts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))


async def prune(older_than: timedelta, now: datetime, *, dry_run: bool) -> PruneReport:
    """Remove old data that is not needed any more from the ledger in the settings and from its Prefect.

    Parameters:
        older_than: the age of the data, at least eight days.
        dry_run: True to count only.

    Raises:
        InvalidCall: `older_than` is too short.
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
        report = PruneReport(_limit(reader, now - older_than))
        async with prefect_api() as api:
            await binding.check(api, reader.id)
            for kind in KINDS:
                report.artifacts[kind] = await _prune_artifacts(api, kind, reader, report.before, dry_run=dry_run)
        if dry_run:
            report.rows = await asyncio.to_thread(reader.pruning.count, report.before)
    if not dry_run:
        with Ledger.open() as ledger:
            report.rows = await asyncio.to_thread(_prune_ledger, ledger, report.before)
    return report


def _limit(reader: Reader, before: datetime) -> datetime:
    """Return the time up to which data may be removed: the next sweep does not read further back than that."""
    read = reader.cursor("events")
    looked_at = reader.created if read is None else datetime.fromisoformat(str(read))
    rebuilding = reader.cursor("rebuild")
    if rebuilding is not None:
        looked_at = min(looked_at, datetime.fromisoformat(str(rebuilding)))
    return min(before, looked_at - SHORTEST)


def _prune_ledger(ledger: Ledger, before: datetime) -> Pruned:
    # Store this before the first row is removed: a replay from an earlier time would record removed updates again.
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
    """Delete the artifacts of one kind that are not needed, and return their number."""
    choose = {"recordings": _recordings, "events of runs": _events_of_runs, "notes of runs": _notes}[kind]
    old, number = OldArtifacts(api, kind, _readable_before(reader, before)), 0
    async for page in old.pages():
        for artifact in choose(page, reader, before):
            number += 1
            if not dry_run:
                await old.delete(artifact)
    return number


def _readable_before(reader: Reader, before: datetime) -> datetime:
    """Return the time up to which artifacts may be deleted: the evaluator has read those that are older."""
    read = reader.cursor("artifacts")
    return min(before, reader.created if read is None else datetime.fromisoformat(str(read)))


def _recordings(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Return the recordings of which the ledger needs no event."""
    return _without(page, _recording_of, reader.pruning.needed_recordings, before)


def _events_of_runs(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Return the artifacts whose runs have ended or are not in the ledger any more."""
    return _without(page, decision_of, reader.pruning.open_decisions, before)


def _notes(page: Collection[Json], reader: Reader, before: datetime) -> list[Json]:
    """Return the notes of runs that have ended."""
    runs = {str(each["id"]): UUID(str(each["flow_run_id"])) for each in page if each.get("flow_run_id")}
    over = reader.pruning.finished_runs(runs.values(), before)
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
    """Return the id of the recording in an artifact; `None` if it cannot be read, and so was refused."""
    try:
        return recording_from_artifact(artifact).id
    except AssetflowError:
        return None
