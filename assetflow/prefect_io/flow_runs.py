"""Create the flow runs of decisions, each once under the decision's id, and find out how they ended."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from assetflow.core.json_data import fit_text
from assetflow.core.rules.ended_runs import DELETED, RunEnd, listed, run_name
from assetflow.core.rules.timers import tick_id
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Automation, Consumer, Decision
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.wire import RunContext, run_context_to_json
from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.prefect_io.connection import id_of, unconfirmed
from assetflow.prefect_io.names import (
    BECAUSE_LABEL,
    CONSUMER_LABEL,
    DEADLINE_LABEL,
    DECISION_LABEL,
    KEY_PARAMETER,
    PARTITION_KEY_LABEL,
    PREDECESSOR_LABEL,
    PREFECT_TIME_TAG,
    TICK_LABEL,
    TIME_TAG,
    TRACEPARENT_LABEL,
)
from assetflow.prefect_io.open_runs import PAGE, end_in, read_runs
from assetflow.prefect_io.rest import Json, PrefectApi

SECONDS = 1.0
SLOW_AT_ONCE = 4


class Turns:
    """A lock that a slow holder keeps only for a limited time.

    A turn ends after `seconds` at the latest; then the next one begins, even if the holder is still working. A holder
    that took longer and failed is slow until it succeeds, or fails faster: slow holders wait only for each other.

    Attributes:
        seconds: the length of a turn.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._turn = asyncio.Lock()
        self._aside = asyncio.Semaphore(SLOW_AT_ONCE)
        self._slow: set[UUID] = set()

    @asynccontextmanager
    async def of(self, who: UUID) -> AsyncGenerator[None]:
        """Wait for the turn of `who`, and hold it for the block."""
        if who in self._slow:
            async with self._aside:
                with self._timed(who, lambda: None):
                    yield
            return
        await self._turn.acquire()
        with ExitStack() as turn:
            turn.callback(self._turn.release)
            # A stack that is closed has nothing left to do at the end of its block.
            with self._timed(who, turn.close):
                yield

    @contextmanager
    def _timed(self, who: UUID, on_late: Callable[[], None]) -> Generator[None]:
        """Call `on_late` if the block takes longer than a turn, and note that `who` is slow."""
        began = asyncio.get_running_loop().time()
        timer = asyncio.get_running_loop().call_later(self.seconds, on_late)
        try:
            yield
        except Exception:
            is_late = asyncio.get_running_loop().time() - began >= self.seconds
            (self._slow.add if is_late else self._slow.discard)(who)
            raise
        else:
            self._slow.discard(who)
        finally:
            timer.cancel()


MOST_IN_LABEL = 1_000
_RETRIED = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retried by assetflow"}


class FlowRuns:
    """Flow runs of a Prefect server."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api
        # Create runs one after the other: on SQLite, two at once are slower than one.
        self._turns = Turns()

    async def create(self, decision: Decision, context: RunContext, automation: Automation | None) -> UUID:
        """Create the run of a decision, or find the one that exists, and return its id.

        Raises:
            PrefectUnreachable: the run may have been created; a retry is safe.
            PrefectRefused: the run cannot be created (the deployment is gone, its parameters are incomplete).
            Unsendable: the request cannot be written; nothing was sent.
        """
        try:
            request = run_request(decision, context)
        except Exception as error:
            raise Unsendable(f"the request for its run cannot be made: {error!r}") from error
        return await self.make(decision.deployment_id, request, automation)

    async def make(self, deployment_id: UUID, request: Json, automation: Automation | None) -> UUID:
        """Create a run of a deployment, or find the one with the same idempotency key, and return its id.

        Raises:
            PrefectUnreachable, PrefectRefused, Unsendable: as `create`.
        """
        path = f"/deployments/{deployment_id}/create_flow_run"
        async with self._turns.of(deployment_id):
            try:
                answer = await self._api.post(path, request, _provenance(automation))
            except PrefectRefused as refusal:
                await self._confirm(refusal, deployment_id)
                raise
        return _run_in(answer, deployment_id, request.get("idempotency_key"))

    async def _confirm(self, refusal: PrefectRefused, deployment_id: UUID) -> None:
        """Make sure that Prefect itself refused the run, and not a proxy that answers wrongly for a while.

        Raises:
            PrefectUnreachable: Prefect does not confirm it.
        """
        try:
            deployment = await self._api.get(f"/deployments/{deployment_id}")
        except PrefectRefused:
            # Prefect refuses nobody a look at a deployment: whatever answers this is not Prefect.
            raise unconfirmed(refusal) from refusal
        if deployment is None:
            confirmed = isinstance(refusal, PrefectNotFound) and await self._api.is_prefect()
        else:
            confirmed = not isinstance(refusal, PrefectNotFound) and id_of(deployment) == deployment_id
        if not confirmed:
            raise unconfirmed(refusal) from refusal

    async def ended(self, runs: Sequence[UUID]) -> dict[UUID, RunEnd]:
        """Return the runs that have ended, and how; a run that is gone was deleted.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        found = await read_runs(self._api, runs)
        states = {run: end_in(found[run]) for run in runs if run in found}
        for run in runs:
            if run not in found and await self._api.get(f"/flow_runs/{run}") is None:
                states[run] = DELETED
        return {run: end for run, end in states.items() if end is not None}


async def retry_runs(api: PrefectApi, runs: Sequence[UUID]) -> list[UUID]:
    """Let runs that have ended run again, each with what it was given, and return their ids. Others stay as they are.

    Raises:
        PrefectUnreachable, PrefectRefused: those before may run again.
    """
    retried: list[UUID] = []
    for place in range(0, len(runs), PAGE):
        ended = await FlowRuns(api).ended(runs[place : place + PAGE])
        for run in (each for each, end in ended.items() if end is not DELETED):
            await api.post(f"/flow_runs/{run}/set_state", {"state": _RETRIED, "force": True})
            retried.append(run)
    return retried


def run_request(decision: Decision, context: RunContext) -> dict[str, Any]:
    """Return the body of create_flow_run.

    The partition key, a text, is the only parameter: Prefect would interpret objects such as those in an extra.
    """
    labels = {DECISION_LABEL: str(decision.id), CONSUMER_LABEL: context.consumer}
    if context.asked is not None:
        labels[BECAUSE_LABEL] = fit_text(causes_in_words(context.asked.because))[:MOST_IN_LABEL]
        if context.asked.predecessor is not None:
            labels[PREDECESSOR_LABEL] = str(context.asked.predecessor)
    if context.traceparent:
        labels[TRACEPARENT_LABEL] = context.traceparent
    parameters: dict[str, str] = {}
    assets = [event.asset for event in decision.events]
    if decision.by_deadline:
        labels[DEADLINE_LABEL] = "true"
    # The run of an opening is scheduled for the opening, which is over by now: workers take it at once.
    starts = decision.scheduled or decision.opening
    details = {} if starts is None else {"state_details": {"scheduled_time": starts.isoformat()}}
    if decision.target_key is not None:
        labels[PARTITION_KEY_LABEL] = parameters[KEY_PARAMETER] = decision.target_key
    return {
        "name": run_name(decision.id, decision.target_key, assets, decision.because, context.consumer),
        "idempotency_key": str(decision.id),
        "context": run_context_to_json(context),
        "labels": labels,
        **({"parameters": parameters} if parameters else {}),
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": fit_text(_message(decision)), **details},
    }


def _run_in(answer: object, deployment_id: UUID, key: object) -> UUID:
    """Return the run in an answer to `create_flow_run`.

    Raises:
        PrefectRefused: the key belongs to a run of another deployment.
        PrefectUnreachable: the answer has another run. A proxy has answered, perhaps with an older answer of Prefect's,
            and the run may or may not exist.
    """
    run = id_of(answer)
    found = cast(Json, answer)
    of, its_key = found.get("deployment_id"), found.get("idempotency_key")
    if of is not None and str(of) != str(deployment_id) and its_key == key is not None:
        raise PrefectRefused(f"Prefect has the run {run} of another deployment, {of}, under this decision's key")
    if str(of) != str(deployment_id) or its_key not in (None, key):
        raise PrefectUnreachable(f"Prefect answered with run {run} of deployment {of}, which was not asked for")
    return run


def _message(decision: Decision) -> str:
    number = len(decision.events)
    if decision.kind == "backfill":
        return f"Started by a backfill for {decision.target_key}"
    if decision.because:
        return f"Started because {causes_in_words(decision.because)}"
    updates = "1 update" if number == 1 else f"{number} updates"
    key = "" if decision.target_key is None else f" for {decision.target_key}"
    return f"Started by {updates}{key}: {listed([event.asset for event in decision.events], ', ')}"


def _provenance(automation: Automation | None) -> dict[str, str]:
    if automation is None:
        return {}
    name = b64encode(automation.name.encode(errors="replace")).decode()
    return {"Prefect-Automation-ID": str(automation.id), "Prefect-Automation-Name": name}


DELETED_AT_ONCE = 50
# The part of a filter by name: a run that waits for its retry has the same type.
_NOT_TAKEN = {"state": {"type": {"any_": ["SCHEDULED"]}, "name": {"any_": ["Scheduled", "Late"]}}}


class TimeRuns:
    """The runs of timetables on a Prefect server."""

    def __init__(self, api: PrefectApi, runs: FlowRuns) -> None:
        self._api = api
        self._runs = runs

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID:
        """Create the run of a tick, or find the one that exists, and return its id.

        Raises:
            PrefectUnreachable: the run may have been created; a retry is safe.
            PrefectRefused: the deployment is gone, or cannot run as it is.
        """
        return await self._runs.make(consumer.deployment_id, time_run_request(consumer, tick), automation)

    async def withdraw(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the runs of later times that no worker has taken, and return their number.

        Raises:
            PrefectUnreachable, PrefectRefused: some may be left; a retry is safe.
        """
        return await self._delete(_of_times(deployment_id, after_=now) | _NOT_TAKEN)

    async def skip_missed(self, deployment_id: UUID, now: datetime) -> int:
        """Delete the runs that no worker has taken and whose next time has passed, and return their number.

        Raises:
            PrefectUnreachable, PrefectRefused: some may be left; a retry is safe.
        """
        passed = {"flow_runs": _of_times(deployment_id, before_=now), "sort": "EXPECTED_START_TIME_DESC", "limit": 1}
        latest = cast("list[Json]", await self._api.post("/flow_runs/filter", passed))
        if not latest:
            return 0
        before = datetime.fromisoformat(str(latest[0]["expected_start_time"])) - timedelta(microseconds=1)
        return await self._delete(_of_times(deployment_id, before_=before) | _NOT_TAKEN)

    async def _delete(self, runs: Json) -> int:
        deleted, wanted = 0, {"flow_runs": runs, "limit": DELETED_AT_ONCE}
        while True:
            # Prefect finds and deletes them in one transaction, so that it does not delete a run that a worker took.
            answer = cast(Json, await self._api.post("/flow_runs/bulk_delete", wanted))
            found = len(answer["deleted"])
            deleted += found
            if found < DELETED_AT_ONCE:
                return deleted


def time_run_request(consumer: Consumer, tick: Tick) -> dict[str, Any]:
    """Return the body of create_flow_run for a tick."""
    timetable = consumer.schedule.timetable
    assert timetable is not None, "only consumers with a timetable have ticks"
    number = tick_id(consumer.deployment_id, tick.time)
    time = tick.time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    before = timetable.previous_before(tick.time)
    context = RunContext(
        decision=None,
        consumer=consumer.name,
        partition_key=tick.partition_key,
        tick=tick.time,
        previous_tick=None if before is None else before.time,
    )
    labels = {CONSUMER_LABEL: consumer.name, TICK_LABEL: time}
    request: dict[str, Any] = {
        "name": f"{tick.partition_key or time}-{str(number)[:6]}",
        "idempotency_key": str(number),
        "context": run_context_to_json(context),
        "labels": labels,
        "tags": ["assetflow", TIME_TAG, PREFECT_TIME_TAG],
        "state": {
            "type": "SCHEDULED",
            "name": "Scheduled",
            "message": f"Runs {timetable.describe()}: this one at {time}",
            "state_details": {"scheduled_time": tick.time.astimezone(UTC).isoformat()},
        },
    }
    if tick.partition_key is not None:
        labels[PARTITION_KEY_LABEL] = tick.partition_key
        # A flow whose timetable gives keys has this parameter, where a user sees the key, or gives another one.
        request["parameters"] = {KEY_PARAMETER: tick.partition_key}
    return request


def _of_times(deployment_id: UUID, **between: datetime) -> dict[str, Any]:
    return {
        "deployment_id": {"any_": [str(deployment_id)]},
        "tags": {"all_": [TIME_TAG]},
        "expected_start_time": {name: moment.astimezone(UTC).isoformat() for name, moment in between.items()},
    }


# Prefect's largest page.
MOST = 200


async def run_states(api: PrefectApi, runs: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of the states of these flow runs, without those that Prefect does not know. Asks once.

    Parameters:
        runs: at most `MOST`.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    return {run: str(found.get("state_name") or "") for run, found in (await read_runs(api, runs)).items()}
