"""Hand over what only this ledger has when another ledger has taken Prefect over.

Updates from the API, the command line and watchers are in the ledger alone. Those that came since the evaluator last
saw that its ledger decides may have come after the other ledger took over. The evaluator writes them to Prefect, where
the other ledger finds them. Each keeps its id, so it counts once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from assetflow.errors import AssetflowError, InvalidCall, LedgerForeign, PrefectRefused
from assetflow.evaluator.health import logger
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger import Ledger
from assetflow.ledger.read.events import DECIDED_UNTIL, only_here
from assetflow.ledger.read.pruning import Pruned
from assetflow.ledger.read.reader import Reader
from assetflow.prefect_io.logs import Kind, OldArtifacts, decision_of
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.recordings import recording_from_artifact, recording_to_artifact
from assetflow.prefect_io.rest import BY_NAME, TAKEN_OVER, Json, PrefectApi, prefect_api

# Stores in the ledger the id of the other ledger that decides, or `None`.
Note = Callable[[str | None], Awaitable[None]]


async def bind(api: PrefectApi, ledger: UUID, note: Note | None = None, *, take_over: bool = False) -> None:
    """Bind this Prefect to a ledger, if it is bound to none, or if the ledger takes it over.

    Parameters:
        note: as for `check`.
        take_over: True to bind it although it is bound to another ledger.

    Raises:
        LedgerForeign: it is bound to another ledger.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if owner is None:
        try:
            await api.post("/variables/", {"name": LEDGER_VARIABLE, "value": str(ledger), "tags": ["assetflow"]})
        except PrefectRefused:
            owner = await _owner(api)  # Another evaluator was faster.
    if owner is not None and owner != str(ledger) and take_over:
        await api.patch(BY_NAME, {"value": str(ledger)})
    await check(api, ledger, note)


async def check(api: PrefectApi, ledger: UUID, note: Note | None = None) -> None:
    """Check that this Prefect is still bound to the ledger.

    Parameters:
        note: called with the id of the other ledger, or with `None`. It is stored in the ledger for processes that
            write to the ledger without an evaluator.

    Raises:
        LedgerForeign: it is bound to another ledger.
        PrefectUnreachable, PrefectRefused
    """
    owner = await _owner(api)
    if note is not None:
        await note(None if owner == str(ledger) else owner)
    if owner != str(ledger):
        raise LedgerForeign(
            f"this Prefect belongs to the ledger {owner}, not to {ledger}",
            where=api.url,
            fix="Start the evaluator with that ledger (ASSETFLOW_HOME, ASSETFLOW_DATABASE_URL), "
            "or with --take-over: then this ledger decides, and the other evaluator stops",
        )


async def _owner(api: PrefectApi) -> str | None:
    variable = cast("Json | None", await api.get(BY_NAME))
    return None if variable is None else str(variable["value"])


class Binding:
    """The bond between this ledger and Prefect.

    Parameters:
        api: Prefect's API.
        ledger: the ledger, as its evaluator has it.
    """

    def __init__(self, api: PrefectApi, ledger: LedgerThread) -> None:
        self._api = api
        self._ledger = ledger
        self._noted: int | None = None
        self._decider: list[str | None] = []

    async def bind(self, *, take_over: bool) -> None:
        """Bind Prefect to the ledger.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `bind`.
        """
        newest = await self._newest()
        await bind(self._api, self._ledger.ledger.id, self._note, take_over=take_over)
        await self._decided_until(newest)

    async def check(self) -> None:
        """Check that Prefect is still bound to the ledger. If it is not, hand over what only this ledger has.

        A Prefect that is bound to none, because its variable or its database was deleted, is bound again.

        Raises:
            LedgerForeign, PrefectUnreachable, PrefectRefused: as `check`.
        """
        await self.bind(take_over=False)

    async def _newest(self) -> int:
        return await self._ledger.call(self._ledger.reader.events.last_sequence)

    async def _note(self, other: str | None) -> None:
        # From here on, `assetflow emit` and the API write to Prefect.
        if self._decider != [other]:
            await self._ledger.call(self._ledger.writer.set_cursor, TAKEN_OVER, other)
            self._decider = [other]
        if other is not None:
            await self._hand_over(other)

    async def _hand_over(self, other: str) -> None:
        newest = await self._newest()
        for recording in await self._ledger.call(only_here, self._ledger.reader):
            try:
                await self._api.post("/artifacts/", recording_to_artifact(recording))
            except PrefectRefused as error:
                logger.warning("%d updates do not reach ledger %s: %s", len(recording.events), other, error)
        await self._decided_until(newest)

    async def _decided_until(self, sequence: int) -> None:
        if sequence != self._noted:
            await self._ledger.call(self._ledger.writer.set_cursor, DECIDED_UNTIL, sequence)
            self._noted = sequence


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
            await check(api, reader.id)
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
    read = [reader.moment("events") or reader.created, reader.moment("rebuild")]
    return min(before, *(each - SHORTEST for each in read if each is not None))


def _prune_ledger(ledger: Ledger, before: datetime) -> Pruned:
    # Store this before the first row is removed: a replay from an earlier time would record removed updates again.
    kept = ledger.reader.moment(CURSOR)
    if kept is None or kept < before:
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
    # Those that no sweep has read stay.
    old, number = OldArtifacts(api, kind, min(before, reader.moment("artifacts") or reader.created)), 0
    async for page in old.pages():
        for artifact in choose(page, reader, before):
            number += 1
            if not dry_run:
                await old.delete(artifact)
    return number


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
