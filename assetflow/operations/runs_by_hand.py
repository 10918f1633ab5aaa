"""Start runs, replay or give up decisions, remove queued events and let a consumer try again, all by hand.

An Eager or Lazy consumer tries again what it tried or waived, another one its failed runs. Runs that you start by
hand consume nothing. Contract 4.5, 4.7, 8.7.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, cast
from uuid import UUID, uuid4

from assetflow.core.json_data import check_json
from assetflow.core.shapes import called, shape
from assetflow.core.values.consumers import Consumer, DecisionMade
from assetflow.core.values.events import key_by_hand
from assetflow.core.values.words import iso, joined
from assetflow.core.wire.run_context import RunContext, run_context_to_json
from assetflow.errors import Conflict, InvalidCall, UnknownAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.installation import Installation, OpenPrefect
from assetflow.prefect_io.flow_runs import retry_runs
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.prefect_io.rest import SECONDS_TO_ANSWER, patiently


@shape
class Retried:
    """The result of a retry."""

    consumer: str
    """`flow/deployment`."""
    partition_key: str | None = field(metadata=called("target_key"))
    """The target key; null for all targets."""
    decisions: Sequence[DecisionMade] = ()
    """What runs at once; the rest waits for what holds it back (`assetflow plan`)."""
    flow_runs: Sequence[UUID] = ()
    """The failed runs that run again in Prefect, each with the updates that it was given."""


async def retry(
    at: Installation, record: ConsumerRecord, key: str | None = None, *, all_failed: bool = False
) -> Retried:
    """Let a consumer try again.

    An Eager or Lazy consumer forgets what it tried and waived, so that the pass that follows asks for what is out of
    date. Of another one, the last failed run runs again in Prefect.

    Parameters:
        key: only this target key; `None` for all.
        all_failed: all failed runs instead of the last one.

    Raises:
        InvalidCall: the consumer has no such key; `where` is `key`. Or it is Eager or Lazy, and has no failed runs to
            choose from; `where` is `all_failed`.
        Conflict: ledger and Prefect know no failed run of it.
        LedgerForeign: another ledger decides.
        PrefectUnreachable, PrefectRefused
    """
    at.check_decides("nothing would run", "Retry on the machine of that ledger")
    if record.consumer.schedule.keeping is None:
        return await _retry_runs(at, record, key, None if all_failed else 1)
    if all_failed:
        raise InvalidCall(
            f"{record.consumer.name} compares what it reads and makes, and tries all its targets again",
            where="all_failed",
            rule="8.7",
            fix="Leave it out",
        )
    return await asyncio.to_thread(_try_again, at, record.consumer, key)


async def _retry_runs(at: Installation, record: ConsumerRecord, key: str | None, limit: int | None) -> Retried:
    name = record.consumer.name
    failed = await asyncio.to_thread(_failed, at.ledger.reader, record, key, limit)
    if failed:
        async with at.prefect() as api:
            # Oldest first, as they were decided on.
            retried = await retry_runs(api, failed[::-1])
        if retried:
            return Retried(name, key, flow_runs=retried)
    of = name if key is None else f"{name}, key {key},"
    raise Conflict(
        f"{of} has no failed run to run again: none has failed, it goes on already, or Prefect has deleted it",
        rule="4.7",
        fix="`assetflow runs ls` lists its runs; `prefect deployment run` starts one that consumes nothing",
    )


def _failed(reader: Reader, record: ConsumerRecord, key: str | None, limit: int | None) -> list[UUID]:
    """Return failed runs, newest first: those of decisions, else those by time and by hand that nothing made good."""
    found = reader.decisions.failed_runs(record.consumer.id, key, limit)
    failing = (each.last for each in reader.ended_runs.failing(record.consumer.name))
    return [*found] or [each.flow_run_id for each in failing if key in (None, each.target_key)][:limit]


async def retry_ended(prefect: OpenPrefect, flow_runs: Sequence[UUID]) -> int:
    """Let runs that have ended run again in Prefect, each with what it was given, and return how many do.

    Raises:
        Conflict: each goes on already, or Prefect has deleted it.
        PrefectUnreachable, PrefectRefused: those before may run again.
    """
    async with prefect() as api:
        retried = await retry_runs(api, flow_runs)
    if not retried:
        one = len(flow_runs) == 1
        what = f"the flow run {flow_runs[0]} cannot" if one else f"none of the {len(flow_runs)} flow runs can"
        raise Conflict(
            f"{what} run again: {'it' if one else 'each'} goes on already, or Prefect has deleted it",
            rule="4.7",
            fix="Look at its state; *Run again* starts another run",
        )
    return len(retried)


def _try_again(at: Installation, consumer: Consumer, key: str | None) -> Retried:
    made = at.ledger.writer.freshness.retry(consumer.id, key, at.now())
    at.on_recorded()
    decisions = [DecisionMade.of(consumer.name, each) for each in made if each.consumer == consumer.id]
    return Retried(consumer.name, key, decisions)


@dataclass(frozen=True)
class RunWanted:
    """The run to start.

    Attributes:
        parameters: the parameters of the flow.
        partition_key: the key that the run is for.
        name: the run's name and idempotency key; `None` for a new run that Prefect names.
        once: the idempotency key of a run without a name; `None` for a run that is new in any case.
        after: the time from which the run may start; with `None` it starts at once.
    """

    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    name: str | None = None
    after: datetime | None = None
    once: UUID | None = None


def maker_of(uri: str, makers: Mapping[str, UUID], chosen: str = "") -> tuple[str, UUID]:
    """Return the name and the id of the deployment that makes an asset.

    Parameters:
        uri: the asset.
        makers: the deployments that declare that they make it, by name.
        chosen: the deployment that the user chose, if there are several.

    Raises:
        UnknownAsset: no deployment makes it; `where` is `asset`.
        Conflict: several deployments make it, and the user chose none of them; `where` is `producer`.
    """
    if not makers:
        raise UnknownAsset(
            f"no deployed flow declares that it makes {uri}",
            where="asset",
            fix="Name the asset in `outlets` of a task, or in `produces` of the flow, and deploy it",
        )
    if len(makers) == 1:
        return next(iter(makers.items()))
    if chosen not in makers:
        raise Conflict(
            f"several deployments make {uri}: {', '.join(sorted(makers))}",
            where="producer",
            fix="Choose one of them, or run one of them in Prefect",
        )
    return chosen, makers[chosen]


async def start_run(prefect: OpenPrefect, deployment: UUID, wanted: RunWanted) -> Mapping[str, Any]:
    """Start a run of a deployment and return Prefect's description of it. Retry while Prefect is busy.

    Raises:
        PrefectUnreachable, PrefectRefused: no run was started.
        InvalidCall: the flow has no such parameter; `where` is `parameters`.
        Conflict: Prefect has deleted the deployment.
        InvalidEvent: the key or the parameters cannot be kept; `where` is `partition_key` or `parameters`.
    """
    path, body = run_request(deployment, wanted)
    if wanted.parameters:
        check_names(await parameters_of(prefect, deployment), wanted.parameters)
    async with prefect() as api:
        ask = partial(api.post, path, body)
        # A user is waiting: if Prefect does not answer at all, one time limit is enough.
        answer = await patiently(ask, within=SECONDS_TO_ANSWER)
    return cast("Mapping[str, Any]", answer)


async def run_again(prefect: OpenPrefect, flow_run: UUID, once: UUID) -> UUID:
    """Start a new run with what a run was given, its parameters, its key and its updates, and return its id.

    It consumes nothing: a decision has consumed the updates, and stays as it is.

    Parameters:
        once: the idempotency key of the new run.

    Raises:
        Conflict: Prefect has deleted the run, or it has no deployment.
        PrefectUnreachable, PrefectRefused: no run was started.
    """
    async with prefect() as api:
        given = cast("Mapping[str, Any] | None", await api.get(f"/flow_runs/{flow_run}"))
        if given is None or given.get("deployment_id") is None:
            raise Conflict(
                f"the flow run {flow_run} cannot be started once more: Prefect has deleted it, or it has no deployment",
                rule="4.5",
                fix="*Run now* on the page of its flow starts a run that is given nothing",
            )
        wanted = RunWanted(given.get("parameters") or {}, once=once)
        path, body = run_request(UUID(str(given["deployment_id"])), wanted)
        body["context"] = given.get("context") or {}
        answer = await patiently(partial(api.post, path, body), within=SECONDS_TO_ANSWER)
    return UUID(str(answer["id"]))


def run_request(deployment: UUID, wanted: RunWanted) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of the request that starts a run. It is safe to send it again.

    The partition key is in the run's context, as in every other run.

    Raises:
        InvalidEvent: as `start_run`.
    """
    details: dict[str, Any] = {} if wanted.after is None else {"scheduled_time": iso(wanted.after)}
    body: dict[str, Any] = {
        # Prefect's lists of runs would fail on text that an update may not hold either. Contract 2.7.
        "parameters": check_json(dict(wanted.parameters), "parameters", where="parameters"),
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": "Started by hand", "state_details": details},
        "idempotency_key": wanted.name or str(wanted.once or uuid4()),
    }
    if wanted.name:
        body["name"] = wanted.name
    if wanted.partition_key is not None:
        body["context"] = run_context_to_json(RunContext(None, "", key_by_hand(wanted.partition_key)))
    return f"/deployments/{deployment}/create_flow_run", body


Kind = Literal["text", "number", "boolean", "json"]
_KINDS: Mapping[str, Kind] = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a flow.

    Attributes:
        kind: how its value is typed: as it is, as a number, as true or false, or as JSON.
        default: its value if nothing is given, as JSON; "" if it has none.
        words: what the flow's docstring says about it.
    """

    name: str
    kind: Kind
    default: str
    words: str

    @property
    def is_required(self) -> bool:
        return not self.default

    def read(self, text: str) -> object:
        """Return the value that was typed.

        Raises:
            InvalidCall: the text is not a value of this kind; `where` is the name of the parameter.
        """
        if self.kind == "text":
            return text
        try:
            value: object = json.loads(text)
        except ValueError as error:
            raise self._refused(text) from error
        if self.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self._refused(text)
        return value

    def _refused(self, text: str) -> InvalidCall:
        what = {"number": "a number", "boolean": "true or false"}.get(self.kind, "JSON")
        return InvalidCall(f"{text!r} is not {what}", where=self.name, fix=f"Write {what}")


async def parameters_of(prefect: OpenPrefect, deployment: UUID) -> Sequence[Parameter]:
    """Return the parameters of a deployment in the order of the flow's signature.

    Raises:
        Conflict: Prefect has deleted the deployment.
        PrefectUnreachable, PrefectRefused
    """
    async with prefect() as api:
        found = cast("Mapping[str, Any] | None", await api.get(f"/deployments/{deployment}"))
    if found is None:
        raise Conflict(f"Prefect has no deployment {deployment} any more", rule="4.5", fix="Deploy the flow again")
    schema = cast("Mapping[str, Any]", found.get("parameter_openapi_schema") or {})
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
    given = cast("Mapping[str, object]", found.get("parameters") or {})
    known = sorted(properties.items(), key=lambda item: item[1].get("position", 0))
    return [_parameter(name, each, given) for name, each in known if name != EVENTS_PARAMETER]


def _parameter(name: str, schema: Mapping[str, Any], given: Mapping[str, object]) -> Parameter:
    choices = cast("Sequence[Mapping[str, Any]]", schema.get("anyOf") or (schema,))
    types = {str(each.get("type", "")) for each in choices} - {"null"}
    default = given.get(name, schema.get("default")) if name in given or "default" in schema else ...
    kind = _KINDS.get(next(iter(types), ""), "json") if len(types) == 1 else "json"
    return Parameter(name, kind, "" if default is ... else json.dumps(default), str(schema.get("description") or ""))


def check_names(known: Sequence[Parameter], given: Mapping[str, object]) -> None:
    """Refuse parameters that a flow does not take.

    Raises:
        InvalidCall: `where` is `parameters`.
    """
    names = [each.name for each in known]
    others = [name for name in given if name not in names]
    if others:
        raise InvalidCall(
            f"the flow has no parameter {joined(list(map(repr, others)))}",
            where="parameters",
            fix=f"It takes {joined(names)}" if names else "It takes none",
        )


def read_typed(known: Sequence[Parameter], texts: Mapping[str, str]) -> dict[str, object]:
    """Return the values of parameters that were typed; an empty text stands for the default.

    Raises:
        InvalidCall: a value is of another kind, or one without a default is missing; `where` is the parameter's name.
    """
    missing = next((each.name for each in known if each.is_required and not texts.get(each.name)), None)
    if missing is not None:
        raise InvalidCall("it has no default", where=missing, fix="Give it a value")
    return {each.name: each.read(text) for each in known if (text := texts.get(each.name, ""))}
