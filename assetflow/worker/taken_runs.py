"""The flow runs that the workers of this machine have taken, as files that outlive them.

Prefect hands a run to one worker, and to no other if that one dies. So a worker notes a run before it takes it, in a
folder of its own, and the run's processes hold a lock on the note. A lock ends with its processes: a note that
nobody holds, in the folder of a worker that is dead, is that of an abandoned run. The note of an ordinary process also
tells which one it is, because not each holds the lock. Whether the dead worker had taken the run says its state in
Prefect: the worker signs the PENDING states that it proposes.

Here are also the requests with which a worker takes a run: each is sent once, and what decides nothing holds no run up.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
from anyio.abc import TaskGroup
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import Flow, State
from prefect.client.schemas.responses import DeploymentResponse, OrchestrationResult, SetStateStatus, StateAcceptDetails
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_logger
from prefect.states import Cancelled, Crashed, Scheduled
from prefect.types import KeyValueLabels

from assetflow.worker.client import BEGAN, mark_of


@dataclass(frozen=True)
class AbandonedRun:
    """A flow run that a dead worker has noted. Another worker may have taken it.

    Attributes:
        noted: when, in seconds since 1970.
        began: it had a process.
        is_ordinary: that process may have done anything before the flow run began, so it is not started again.
    """

    note: Path
    noted: float
    began: bool
    is_ordinary: bool = False

    @property
    def id(self) -> UUID:
        """The id of the flow run."""
        return UUID(self.note.name)

    def forget(self) -> None:
        """Remove the note: the run is seen to."""
        self.note.unlink(missing_ok=True)


class TakenRuns(AbstractContextManager["TakenRuns", None]):
    """A context in which a worker notes its runs, and sees the notes of dead workers.

    Parameters:
        folder: the place for all workers of one pool on this machine.
        worker: the name of this one.

    Attributes:
        signature: the message of the states that this worker proposes when it takes a run. No other worker has it.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = folder / uuid4().hex
        self.signature = f"Taken by worker {worker} ({self._own.name})"
        # Locked before the folder is there, so nobody takes this worker for dead.
        self._lock = _lock_of(self._own).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._own.mkdir()

    def note(self, run: UUID) -> Path:
        """Note a run that is about to be taken, and return the note."""
        note = self._own / str(run)
        note.touch()
        return note

    def note_process(self, run: UUID, process: int) -> None:
        """Note the process of a run, which does not hold the note."""
        self.note(run).write_bytes(BEGAN + b" " + mark_of(process))

    def forget(self, run: UUID) -> None:
        """Remove the note of a run that has ended."""
        (self._own / str(run)).unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        """Leave the remaining notes to the other workers of the pool."""
        _remove(self._own)
        self._lock.close()

    def abandoned(self) -> Iterator[Path]:
        """Yield the notes of dead workers, and remove their folders when there are none left."""
        for folder in [each for each in self._folder.iterdir() if each.is_dir()]:
            with suppress(FileNotFoundError), _lock_of(folder).open() as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                yield from list(folder.iterdir())
                _remove(folder)


@contextmanager
def held(note: Path) -> Generator[AbandonedRun | None]:
    """Hold the note of an abandoned run; `None` if the run has a process, or another process holds the note."""
    with note.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        found = os.fstat(file.fileno())
        began, *process = file.read().split()[:3] or [b""]
        if not found.st_nlink or (process and mark_of(int(process[0])) == b" ".join(process)):
            yield None
        else:
            yield AbandonedRun(note, found.st_mtime, began == BEGAN, bool(process))


def _lock_of(folder: Path) -> Path:
    return folder.with_suffix(".worker")


def _remove(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
        _lock_of(folder).unlink()


logger = get_logger("worker.assetflow")

# A request of the dead worker may still be with Prefect's server, or on its way.
SECONDS_TO_BEGIN = 120.0
_GONE = "The worker of this flow run died, and so did the run's process."
_STATES = {"schedule": Scheduled, "crash": Crashed, "cancel": Cancelled}

Fate = Literal["forget", "wait", "schedule", "crash", "cancel"]

# What becomes of runs without a process. A SCHEDULED one is there for all workers.
_NOT_BEGUN: dict[str, Fate] = {"SCHEDULED": "forget", "PENDING": "schedule", "CANCELLING": "cancel"}


def fate(run: AbandonedRun, state: str, since: float, was_taken: bool, now: float) -> Fate:
    """Return what is to become of an abandoned run.

    Parameters:
        state: the type of its state in Prefect, and `since` when it has that.
        was_taken: the worker that died is the last that has taken the run.
    """
    if not was_taken and state != "SCHEDULED":
        return "forget"
    if run.began and state in ("RUNNING", "CANCELLING"):
        return "crash" if state == "RUNNING" else "cancel"
    if state not in _NOT_BEGUN:
        return "forget"
    if now - max(since, run.noted) < SECONDS_TO_BEGIN:
        return "wait"
    return "crash" if run.is_ordinary and state == "PENDING" else _NOT_BEGUN[state]


async def see_to_abandoned_runs(taken: TakenRuns, client: PrefectClient) -> None:
    """Start or end the runs of dead workers that nobody executes."""
    for note in taken.abandoned():
        with suppress(FileNotFoundError), held(note) as run:
            if run is not None:
                try:
                    await _see_to(run, client)
                except httpx.HTTPError as error:
                    logger.debug("the flow run %s of a dead worker waits: %s", run.id, error)


async def _see_to(run: AbandonedRun, client: PrefectClient) -> None:
    try:
        found = await client.read_flow_run(run.id)
    except ObjectNotFound:
        run.forget()
        return
    state = found.state
    if state is None:
        return
    was_taken = await _was_taken(run, state, client)
    decided = fate(run, state.type.value, state.timestamp.timestamp(), was_taken, time.time())
    if decided == "wait":
        return
    if decided in _STATES:
        logger.info("flow run %s of a dead worker: %s", run.id, decided)
        await client.set_flow_run_state(run.id, _STATES[decided](message=_GONE), force=True)
    run.forget()


async def _was_taken(run: AbandonedRun, state: State[Any], client: PrefectClient) -> bool:
    """Return True if the dead worker has signed the last of the run's PENDING states."""
    states = [state] if state.is_pending() else await client.read_flow_run_states(run.id)
    taken = [each for each in states if each.is_pending()]
    # A worker signs with the name of its folder.
    return bool(taken) and run.note.parent.name in (max(taken, key=lambda each: each.timestamp).message or "")


def note_what_is_taken(client: PrefectClient, taken: TakenRuns) -> None:
    """Let a worker's client note each run before it proposes a PENDING state, and sign that state.

    Prefect then knows which worker has a run. It refuses a run that another worker has. It also refuses one that this
    worker has, if its answer was lost and the client has asked once more: that run is taken.
    """
    propose = client.set_flow_run_state

    async def propose_signed(
        flow_run_id: UUID | str, state: State[Any], force: bool = False
    ) -> OrchestrationResult[Any]:
        if force or not state.is_pending():
            return await propose(flow_run_id, state, force)
        run = UUID(str(flow_run_id))
        taken.note(run)
        signed = state.model_copy(update={"message": taken.signature})
        result: OrchestrationResult[Any] = await propose(run, signed)
        # Once a run is taken, its process needs the note, whatever becomes of the states that follow.
        if state.name != "Pending" or result.status is SetStateStatus.ACCEPT:
            return result
        found = (await client.read_flow_run(run)).state
        if found is not None and found.is_pending() and found.message == taken.signature:
            return OrchestrationResult(status=SetStateStatus.ACCEPT, state=found, details=StateAcceptDetails())
        taken.forget(run)
        return result

    client.set_flow_run_state = propose_signed


SECONDS_TO_KNOW_A_FLOW = 60.0

# Each run is submitted in a context of its own.
_deployment: ContextVar[DeploymentResponse | None] = ContextVar("_deployment", default=None)


def shorten_submissions(client: PrefectClient, tasks: TaskGroup) -> None:
    """Let a worker's client read the deployment of a run once, label the run meanwhile, and leave Submitting out.

    Prefect's worker reads the deployment to see if it exists, and again for its job variables. It reads the flow for
    its name, which never changes, and its tags, which are read again after a minute. Between Pending, which takes the
    run, and Running it proposes a second PENDING state, which holds nothing back.

    Parameters:
        tasks: where the labels are sent.
    """
    read, label, propose = client.read_deployment, client.update_flow_run_labels, client.set_flow_run_state
    read_flow = client.read_flow
    flows: dict[UUID, tuple[float, Flow]] = {}

    async def read_once(deployment_id: UUID | str) -> DeploymentResponse:
        known = _deployment.get()
        if known is None or known.id != UUID(str(deployment_id)):
            known = await read(deployment_id)
            _deployment.set(known)
        return known

    async def read_flow_now_and_then(flow_id: UUID) -> Flow:
        until, flow = flows.get(flow_id, (0.0, None))
        if flow is None or until < time.monotonic():
            flow = await read_flow(flow_id)
            flows[flow_id] = time.monotonic() + SECONDS_TO_KNOW_A_FLOW, flow
        return flow

    async def label_meanwhile(flow_run_id: UUID, labels: KeyValueLabels) -> None:
        tasks.start_soon(_send_labels, label, flow_run_id, labels)

    async def propose_what_counts(
        flow_run_id: UUID | str, state: State[Any], force: bool = False
    ) -> OrchestrationResult[Any]:
        if state.name == "Submitting" and not force:
            return OrchestrationResult(status=SetStateStatus.ACCEPT, state=state, details=StateAcceptDetails())
        return await propose(flow_run_id, state, force)

    client.read_deployment = read_once
    client.read_flow = read_flow_now_and_then
    client.update_flow_run_labels = label_meanwhile
    client.set_flow_run_state = propose_what_counts


async def _send_labels(label: Any, flow_run_id: UUID, labels: KeyValueLabels) -> None:
    try:
        await label(flow_run_id, labels)
    # The worker lives on without them: Prefect may not know the run any more, or the worker has closed its connections.
    except Exception as error:
        logger.debug("flow run %s has no labels of its worker: %s", flow_run_id, error)
