"""The context of a flow run that assetflow starts: the decision or time behind it, its events and its key.

Its events are one JSON text in ASCII, which Prefect keeps as it is, whatever the extras hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from assetflow.core.freshness.records import Asked
from assetflow.core.values.events import AssetEvent
from assetflow.core.wire import fields
from assetflow.core.wire.declarations import asked_from_json, asked_to_json
from assetflow.core.wire.events import VERSION, check_version, event_to_json, recorded_event_from_json
from assetflow.core.wire.fields import Json
from assetflow.errors import InvalidEvent

CONTEXT_KEY = "assetflow"
_TIMES = ("tick", "previous_tick", "made", "opening")


@dataclass(frozen=True)
class RunContext:
    """The part of a flow run's context that assetflow writes.

    Attributes:
        decision: the id of the decision that started the run; `None` if the clock did.
        consumer: `flow/deployment`.
        partition_key: the run's key, or `None` (5.3, 5.7).
        events: the events that the run consumed, oldest first; `None` if an artifact holds them.
        artifact: the id of the artifact that holds the events, if they are too large for a context.
        tick: the time of the timetable that the run is for, UTC; `None` for the run of a decision.
        previous_tick: the time before `tick`, where the run's data interval begins (7.3).
        asked: what an Eager or Lazy flow was asked for; `None` for other runs.
        made, opening: as of the decision; a ledger that is rebuilt takes them over.
        traceparent: the span of the decision, as a W3C `traceparent`; "" without tracing.
    """

    decision: UUID | None
    consumer: str
    partition_key: str | None = None
    events: tuple[AssetEvent, ...] | None = ()
    artifact: UUID | None = None
    tick: datetime | None = None
    previous_tick: datetime | None = None
    traceparent: str = ""
    asked: Asked | None = None
    made: datetime | None = None
    opening: datetime | None = None


def events_to_text(events: Sequence[AssetEvent]) -> str:
    """Return events as one JSON text in ASCII."""
    return json.dumps([event_to_json(event) for event in events], separators=(",", ":"))


def events_from_text(written: object, *, where: str = "") -> tuple[AssetEvent, ...]:
    """Return the events that `events_to_text` wrote.

    Raises:
        InvalidEvent: the data is damaged.
    """
    try:
        data = cast(object, json.loads(cast(str, written)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent("the events of the run are not JSON", where=where) from error
    if not isinstance(data, list) or not all(isinstance(each, Mapping) for each in cast("list[object]", data)):
        raise InvalidEvent("the events of the run are not a list of events", where=where)
    return tuple(recorded_event_from_json(each, where=where) for each in cast("list[Json]", data))


def run_context_to_json(context: RunContext) -> dict[str, object]:
    """Return the run context as `{"assetflow": {...}}`, to be merged into the flow run's context."""
    written: dict[str, object] = {
        "version": VERSION,
        "consumer": context.consumer,
        "decision": fields.uuid_text(context.decision),
        "partition_key": context.partition_key,
        "events": None if context.events is None else events_to_text(context.events),
        "artifact": fields.uuid_text(context.artifact),
        "asked": None if context.asked is None else asked_to_json(context.asked),
        "traceparent": context.traceparent,
    }
    times: dict[str, datetime | None] = {name: getattr(context, name) for name in _TIMES}
    written |= {name: None if time is None else time.astimezone(UTC).isoformat() for name, time in times.items()}
    return {CONTEXT_KEY: fields.without_empty(written, keep=frozenset({"consumer"}))}


def run_context_from_json(context: Mapping[str, object] | None) -> RunContext | None:
    """Return the run context in a flow run's context, or `None` if assetflow did not start the run.

    Raises:
        InvalidEvent: another version of assetflow wrote it, or it is damaged.
    """
    data = (context or {}).get(CONTEXT_KEY)
    if data is None:
        return None
    where = "the flow run's context"
    if not isinstance(data, Mapping):
        raise InvalidEvent("assetflow's part is not a JSON object", where=where, fix="Update assetflow")
    data = cast(Json, data)
    check_version(data, where, "the run context")
    events = data.get("events")
    decision, artifact = data.get("decision"), data.get("artifact")
    return RunContext(
        decision=None if decision is None else fields.uuid(decision, "decision", where),
        consumer=str(data.get("consumer", "")),
        partition_key=cast("str | None", data.get("partition_key")),
        events=None if events is None else events_from_text(events, where=where),
        artifact=None if artifact is None else fields.uuid(artifact, "artifact", where),
        traceparent=str(data.get("traceparent", "")),
        asked=_asked(data.get("asked"), where),
        **{name: _time(data, name, where) for name in _TIMES},
    )


def _time(data: Json, field: str, where: str) -> datetime | None:
    return None if data.get(field) is None else fields.time(data[field], field, where)


def _asked(data: object, where: str) -> Asked | None:
    try:
        return None if data is None else asked_from_json(cast(Json, data))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidEvent("what the run was asked for cannot be read", where=where, fix="Update assetflow") from error
