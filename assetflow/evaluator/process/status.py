"""Find out whether everything works: who evaluates, what Prefect has that is not recorded yet, what waits for a run.

It asks the ledger and Prefect, not the evaluator, which may be dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from assetflow.core.explain import NotStarted, not_started_words
from assetflow.core.rules.adoption import Decided
from assetflow.core.values.words import count, iso
from assetflow.errors import AssetflowError
from assetflow.evaluator.health import Health, HeldUp, logger
from assetflow.evaluator.incoming.catch_up import AHEAD, UPDATES, Sweeps
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.binding import CURSOR as PRUNED
from assetflow.ledger.lease import Evaluators, downtime, failing_words, is_silent, not_watching
from assetflow.ledger.read.freshness import HELD_UP
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import NO_WATCHERS, WatchingStatus
from assetflow.prefect_io.connection import unreadable
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.open_runs import OpenPrefect, not_started, past_decisions
from assetflow.prefect_io.recordings import created, ids_in_artifact, part_of_recording
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

# How late an update or a run may be before it is a problem.
LATE = timedelta(seconds=60)
MOST = 1_000
# Prefect returns at most so many runs at once.
MOST_RUNS = 200

STORE_EVERY = 2.0


class HeldUpWriter:
    """Writes to the ledger what the evaluator cannot do, whenever that changes."""

    def __init__(self, ledger: LedgerThread, health: Health) -> None:
        self._ledger = ledger
        self._health = health

    async def run(self) -> None:
        """Write until cancelled. Replace first what an earlier evaluator wrote.

        Raises:
            LedgerError: call it again.
        """
        written: list[dict[str, Any]] | None = None
        while True:
            self._health.up("reporting what is held up")
            now = [asdict(each) | {"since": iso(each.since)} for each in self._health.held_up]
            if now != written:
                await self._ledger.call(self._ledger.writer.set_cursor, HELD_UP, now)
                written = now
            await asyncio.sleep(STORE_EVERY)


def held_up(reader: Reader) -> list[HeldUp]:
    """Return what the evaluator could not do when it last wrote to the ledger."""
    kept = cast("list[dict[str, str]]", reader.cursor(HELD_UP) or [])
    return [HeldUp(each["name"], datetime.fromisoformat(each["since"]), each["reason"]) for each in kept]


@dataclass(frozen=True)
class Lag:
    """The recordings that Prefect has and the ledger does not.

    Attributes:
        updates: their number, among the first 1,000 that came after the evaluator's last sweep.
        oldest: the time since when the oldest of them is in Prefect.
    """

    updates: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class _Stored:
    """A recording in Prefect, and the ids under which the ledger may know it."""

    recording: UUID
    moment: datetime
    numbers: frozenset[UUID]


@dataclass(frozen=True)
class InstallationStatus:
    """The status of an installation.

    Attributes:
        now: the time of this status.
        evaluators: who evaluates, and who stands by.
        silent: True if the evaluator's process is running, on this machine, but does not renew its lease.
        prefect: the address of Prefect's API.
        trouble: why Prefect cannot be asked; empty if it answers.
        lag: what is not recorded yet; `None` if Prefect does not answer.
        waiting: the number of decisions without a run.
        oldest_waiting: the time when the oldest of them was made.
        waits_for: the error of the last attempt to start its run; empty if there was none.
        undeliverable: the number of decisions that will have no run.
        refused: the number of refused updates.
        refused_deployments: the number of deployments whose schedules cannot be used.
        failed: how many flows, or keys of flows, have failed and were not made good (4.9).
        held_up: what the evaluator cannot do, as it has written to the ledger.
        not_started: the runs of decisions that wait for a worker, the oldest first.
        watching: how the watchers are.
        notes: what the evaluator noted of deployments, by name.
    """

    now: datetime
    evaluators: Evaluators
    silent: bool
    prefect: str
    trouble: str
    lag: Lag | None
    waiting: int
    oldest_waiting: datetime | None
    waits_for: str
    undeliverable: int
    refused: int
    refused_deployments: int = 0
    failed: int = 0
    held_up: Sequence[HeldUp] = ()
    not_started: Sequence[NotStarted] = ()
    watching: WatchingStatus = NO_WATCHERS
    notes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def servers(self) -> Mapping[str, str]:
        """What does not answer or run now, with the reason."""
        down = downtime(self.evaluators)
        away = {"Prefect cannot be asked": self.trouble} if self.trouble else {}
        return away if down is None else {down.reason: down.effect} | away

    @property
    def problems(self) -> list[str]:
        """The troubles that a user should look at now, a sentence each."""
        down = downtime(self.evaluators)
        found = [] if down is None else [str(down)]
        found += [str(away)] if (away := not_watching(self.watching)) else []
        found += [words] if (words := failing_words(self.watching)) else []
        if self.trouble:
            found.append(f"Prefect cannot be asked: {self.trouble}")
        else:
            held_up = (each for each in self.held_up if self._is_late(each.since))
            found += [f"the evaluator is held up: {each.name}: {each.reason}" for each in held_up]
        if self.lag is not None and self._is_late(self.lag.oldest):
            found.append(f"{self.lag.updates} updates in Prefect are not recorded yet")
        if self._is_late(self.oldest_waiting):
            reason = f": {self.waits_for}" if self.waits_for else ""
            found.append(f"{self.waiting} decisions wait for their runs{reason}")
        late = [each for each in self.not_started if self._is_late(each.since)]
        if late:
            found.append(f"{count(len(late), 'run')} not begun. {not_started_words(late[0])}")
        return found

    def _is_late(self, since: datetime | None) -> bool:
        return since is not None and self.now - since > LATE


async def installation_status(reader: Reader, now: datetime, prefect: OpenPrefect = prefect_api) -> InstallationStatus:
    """Ask the ledger and Prefect for the status of the installation.

    Parameters:
        prefect: opens Prefect's API.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    evaluators, known = reader.evaluators(), reader.status()
    oldest = reader.decisions.waiting(limit=1)
    address, trouble, lag = reader.prefect_api_url() or "", "", None
    late_runs: Sequence[NotStarted] = ()
    try:
        async with prefect() as api:
            address = api.url
            lag = await _lag(api, reader, now)
            late_runs = await _not_started(api, reader, now)
    except AssetflowError as error:
        trouble = str(error)
    except (LookupError, TypeError, ValueError) as error:
        trouble = str(unreadable(error, address))
    return InstallationStatus(
        now=now,
        evaluators=evaluators,
        silent=is_silent(evaluators),
        prefect=address,
        trouble=trouble,
        lag=lag,
        waiting=known.waiting,
        oldest_waiting=known.oldest_waiting,
        waits_for=oldest[0][0].error if oldest else "",
        undeliverable=known.undeliverable,
        refused=known.refused,
        refused_deployments=len(reader.refused_deployments()),
        failed=len(reader.ended_runs.failing()),
        held_up=held_up(reader) if evaluators.alive else (),
        not_started=late_runs,
        watching=reader.watchers.status(),
        notes=reader.notes(),
    )


async def _not_started(api: PrefectApi, reader: Reader, now: datetime) -> Sequence[NotStarted]:
    launched = reader.decisions.find(status="launched", limit=MOST_RUNS)
    runs = [each.flow_run_id for each in launched if each.flow_run_id is not None]
    found = await not_started(api, runs, now)
    return sorted(found.values(), key=lambda each: each.since)


async def _lag(api: PrefectApi, reader: Reader, now: datetime) -> Lag:
    stored = await _first(ArtifactLog(api).updates_since(_read_up_to(reader, "artifacts")), _of_artifact)
    events = EventLog(api).between(_read_up_to(reader, "events"), now + AHEAD, UPDATES)
    stored += await _first(events, _of_event)
    known = reader.events.known({number for each in stored for number in each.numbers})
    # The other content of a retry is never recorded: a recording is known if the ledger has any of its attempts.
    recorded = {each.recording for each in stored if not known.isdisjoint(each.numbers)}
    missing = {each.recording: each.moment for each in stored if each.recording not in recorded}
    return Lag(len(missing), min(missing.values(), default=None))


def _read_up_to(reader: Reader, log: str) -> datetime:
    """Return the time from which the evaluator reads a log again. It never records what is older than its floor."""
    floor = reader.moment("floor") or reader.created
    cursor = reader.moment(log)
    return floor if cursor is None else max(floor, cursor - Sweeps().overlap)


async def _first(log: AsyncIterator[Json], read: Callable[[Json], Sequence[_Stored]]) -> list[_Stored]:
    """Return the first recordings in one of Prefect's logs."""
    found: list[_Stored] = []
    async for each in log:
        found += read(each)
        if len(found) == MOST:
            break
    return found


def _of_event(event: Json) -> list[_Stored]:
    """Return the recording of an event from outside assetflow; those of its own tasks are in their artifacts too."""
    number = UUID(str(event["id"]))
    moment = datetime.fromisoformat(str(event.get("received") or event["occurred"]))
    return [] if _is_part(event) else [_Stored(number, moment, frozenset({number}))]


def _of_artifact(artifact: Json) -> list[_Stored]:
    """Return the recording in an artifact; nothing for one that need not make an update."""
    found = ids_in_artifact(artifact)
    return [] if found is None else [_Stored(found[0], created(artifact), found[1])]


def _is_part(event: Json) -> bool:
    try:
        return part_of_recording(event) is not None
    except AssetflowError:
        return False


# The cursor that holds the start of a rebuild until it is done, so that the next process goes on with it.
CURSOR = "rebuild"
# The cursor up to which the ledger has adopted the decisions of Prefect's runs.
ADOPTED = "adopted"
# How much the clocks of the evaluator and of Prefect may differ.
CLOCKS = timedelta(hours=1)
# A ledger that knows so many decisions in a row, the newest ones, lacks none.
ENOUGH = 100


class Rebuild:
    """The steps before and after the first sweep of a ledger that lacks decisions; for others they do nothing."""

    def __init__(self, ledger: LedgerThread, api: PrefectApi) -> None:
        self._ledger = ledger
        self._reader, self._writer = ledger.reader, ledger.writer
        self._api = api
        self._newest: datetime | None = None

    async def plan(self, since: datetime) -> None:
        """Note that a replay begins. It is a rebuild if the ledger has no events.

        Raises:
            LedgerError
        """
        if not (await self._ledger.call(self._reader.status)).last_event:
            await self._ledger.set_cursor(CURSOR, since)

    async def begin(self) -> None:
        """Let the ledger adopt the decisions that have runs, if it lacks some.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        since = await self._ledger.cursor(CURSOR)
        if since is None:
            since = await self._lacking_since()
        if since is None:
            return
        decided = {each.id: each for found in past_decisions(self._api, since - CLOCKS) async for each in found}
        self._newest = max((each.launched for each in decided.values()), default=None)
        lacking = await self._ledger.call(self._writer.events.begin_adoption, list(decided.values()))
        logger.info("rebuilding: %d decisions that this ledger does not know have their runs in Prefect", lacking)

    async def finish(self) -> None:
        """Finish the rebuild: every update that Prefect still has is now in the ledger.

        Raises:
            LedgerError
        """
        if await self._ledger.cursor(CURSOR) is None:
            return
        await self._ledger.call(self._writer.events.end_adoption, self._ledger.now())
        if self._newest is not None:
            # Decisions whose updates are gone stay unknown; they must not cause another rebuild.
            await self._ledger.set_cursor(ADOPTED, self._newest)
        await self._ledger.set_cursor(CURSOR, None)
        logger.info("rebuilding: done")

    async def _lacking_since(self) -> datetime | None:
        """Return the time since which the ledger lacks decisions that Prefect has runs of; `None` if it lacks none.

        Such a ledger is an older one that was restored, or another ledger decided meanwhile. Then also set the cursors
        back by the full overlap, because the updates of those decisions may have occurred long before them.
        """
        last_made = await self._ledger.call(self._reader.decisions.last_made, self._ledger.now())
        known_until = last_made or self._ledger.ledger.created
        since = max(known_until - CLOCKS, *await self._harmless_gaps())
        unknown = await self._unknown(since)
        if unknown is None:
            return None
        logger.warning(
            "this ledger does not know decision %s, whose run was created at %s: it is an older ledger that was "
            "restored, or another one decided meanwhile; it adopts the decisions that it lacks",
            unknown.id,
            f"{unknown.launched:%Y-%m-%d %H:%M:%S} UTC",
        )
        for name in ("artifacts", "events"):
            read = await self._ledger.cursor(name)
            if read is not None:
                await self._ledger.set_cursor(name, min(read, self._ledger.now()) - Sweeps().full_overlap)
        await self._ledger.set_cursor(CURSOR, since)
        return since

    async def _harmless_gaps(self) -> list[datetime]:
        """Return the times before which decisions may be unknown: the beginning, the last prune, the last adoption.

        `None` of them is later than now, even if a clock that was ahead wrote it.
        """
        cursors = [await self._ledger.cursor(name) for name in ("floor", PRUNED, ADOPTED)]
        gaps = [self._ledger.ledger.created if cursors[0] is None else cursors[0], *filter(None, cursors[1:])]
        return [min(each, self._ledger.now()) for each in gaps]

    async def _unknown(self, since: datetime) -> Decided | None:
        """Return the newest decision that has a run and is not in the ledger; `None` if the newest ones are."""
        found = [await self._newest_unknown(reading, since) for reading in past_decisions(self._api, since)]
        return max(filter(None, found), key=lambda each: each.launched, default=None)

    async def _newest_unknown(self, reading: AsyncIterator[Decided], since: datetime) -> Decided | None:
        checked = 0
        async for decided in reading:
            if decided.launched > since and not await self._ledger.call(self._reader.decisions.known, [decided.id]):
                return decided
            checked += 1
            if checked == ENOUGH:
                break
        return None
