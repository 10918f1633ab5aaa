"""How it goes: who evaluates, what Prefect holds that is not recorded yet, and what waits for a run.

It asks the ledger and Prefect, not the evaluator: whether that lives is part of the question.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from socket import gethostname
from uuid import UUID

from assetflow.errors import AssetflowError
from assetflow.evaluator.catch_up import AHEAD, UPDATES, Sweeps
from assetflow.ledger.lease import Lease, is_running
from assetflow.ledger.reader import Reader
from assetflow.ledger.standby import Evaluators
from assetflow.prefect_io.artifact_log import ArtifactLog, created
from assetflow.prefect_io.event_log import EventLog
from assetflow.prefect_io.recordings import part_of_recording, recording_from_artifact
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

# How late an update or a run may be before somebody should look.
LATE = timedelta(seconds=60)
MOST = 1_000

OpenPrefect = Callable[[], AbstractAsyncContextManager[PrefectApi]]


@dataclass(frozen=True)
class Lag:
    """What Prefect holds that the ledger does not.

    Attributes:
        updates: how many recordings, among the thousand that came after the last look of the evaluator at Prefect.
        oldest: since when the oldest of them is there.
    """

    updates: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class _Held:
    """One delivery of a recording that Prefect holds, and the ids under which the ledger may know it."""

    recording: UUID
    moment: datetime
    numbers: frozenset[UUID]


@dataclass(frozen=True)
class Condition:
    """The condition of an installation.

    Attributes:
        now: when this was asked.
        evaluators: who evaluates, and who stands by.
        silent: whether the evaluator's process is there, on this machine, and gives no sign of life.
        prefect: the address of Prefect's API.
        trouble: why Prefect cannot be asked; empty if it answers.
        lag: none if Prefect does not answer.
        waiting: decisions without a run.
        oldest_waiting: when the oldest of them was made.
        waits_for: what the last attempt to start the run of that one met; empty if there was none.
        undeliverable, refused: decisions that will have no run; what was sent as an update and is none.
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

    @property
    def problems(self) -> list[str]:
        """What needs somebody's attention now, a sentence each."""
        found: list[str] = []
        if self.silent:
            found.append("the evaluator stands still, or cannot write to the ledger: its log says why")
        elif not self.evaluators.alive:
            found.append("no evaluator works: updates are kept, but start nothing until one is started")
        if self.trouble:
            found.append(f"Prefect cannot be asked: {self.trouble}")
        if self.lag is not None and self._is_late(self.lag.oldest):
            found.append(f"{self.lag.updates} updates in Prefect are not recorded yet")
        if self._is_late(self.oldest_waiting):
            reason = f": {self.waits_for}" if self.waits_for else ""
            found.append(f"{self.waiting} decisions wait for their runs{reason}")
        return found

    def _is_late(self, since: datetime | None) -> bool:
        return since is not None and self.now - since > LATE


async def look(reader: Reader, now: datetime, prefect: OpenPrefect = prefect_api) -> Condition:
    """Find out how it goes.

    Parameters:
        prefect: opens Prefect's API.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    evaluators, known = reader.evaluators(), reader.status()
    oldest = reader.undelivered(limit=1)
    address, trouble, lag = reader.prefect_api_url() or "", "", None
    try:
        async with prefect() as api:
            address = api.url
            lag = await _lag(api, reader, now)
    except AssetflowError as error:
        trouble = str(error)
    return Condition(
        now=now,
        evaluators=evaluators,
        silent=not evaluators.alive and _is_here(evaluators.lease),
        prefect=address,
        trouble=trouble,
        lag=lag,
        waiting=known.waiting,
        oldest_waiting=known.oldest_waiting,
        waits_for=oldest[0][0].error if oldest else "",
        undeliverable=known.undeliverable,
        refused=known.refused,
    )


def _is_here(lease: Lease | None) -> bool:
    return lease is not None and lease.holder.host == gethostname() and is_running(lease.holder.pid)


async def _lag(api: PrefectApi, reader: Reader, now: datetime) -> Lag:
    held = await _artifacts(api, _read_up_to(reader, "artifacts"))
    held += await _events(api, _read_up_to(reader, "events"), now)
    known = reader.known_events({number for each in held for number in each.numbers})
    # What a retry said otherwise is never recorded: a recording is known when any attempt of it is.
    recorded = {each.recording for each in held if not known.isdisjoint(each.numbers)}
    missing = {each.recording: each.moment for each in held if each.recording not in recorded}
    return Lag(len(missing), min(missing.values(), default=None))


def _read_up_to(reader: Reader, log: str) -> datetime:
    cursor = reader.cursor(log)
    return reader.created if cursor is None else datetime.fromisoformat(str(cursor)) - Sweeps().overlap


async def _artifacts(api: PrefectApi, since: datetime) -> list[_Held]:
    found: list[_Held] = []
    async for artifact in ArtifactLog(api).updates_since(since):
        found.append(_of_artifact(artifact))
        if len(found) == MOST:
            break
    return found


async def _events(api: PrefectApi, since: datetime, now: datetime) -> list[_Held]:
    """Those from outside: what our own tasks post is in their artifacts too."""
    found: list[_Held] = []
    async for event in EventLog(api).between(since, now + AHEAD, UPDATES):
        number = UUID(str(event["id"]))
        if not _is_part(event):
            moment = datetime.fromisoformat(str(event.get("received") or event["occurred"]))
            found.append(_Held(number, moment, frozenset({number})))
        if len(found) == MOST:
            break
    return found


def _of_artifact(artifact: Json) -> _Held:
    number = UUID(str(artifact["id"]))
    try:
        recording = recording_from_artifact(artifact)
    except AssetflowError:
        return _Held(number, created(artifact), frozenset({number}))
    return _Held(recording.id, created(artifact), frozenset(event.id for event in recording.events))


def _is_part(event: Json) -> bool:
    try:
        return part_of_recording(event) is not None
    except AssetflowError:
        return False
