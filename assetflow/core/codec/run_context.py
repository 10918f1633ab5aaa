"""What a flow run that assetflow makes carries in its context: what started it, with which events, for which key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from assetflow.core.codec.events import Json, check_version, event_from_json, event_to_json
from assetflow.core.events import AssetEvent
from assetflow.errors import InvalidEvent

CONTEXT_KEY = "assetflow"
VERSION = 1


@dataclass(frozen=True)
class RunContext:
    """The part of a flow run's context that is ours.

    Attributes:
        decision: the decision that started the run; none for time runs.
        consumer: `flow/deployment`.
        partition_key: the run's key, if it has one (5.3, 5.7).
        events: what the run consumed, oldest first; none when they lie in an artifact.
        artifact: the artifact that holds the events, when they are larger than a context should be.
        tick: the time of the time table that the run is for, UTC; none for runs of decisions.
        previous_tick: the time before that one, where the run's data interval begins (7.3).
        traceparent: the span of the decision, as W3C writes it; empty without tracing.
    """

    decision: UUID | None
    consumer: str
    partition_key: str | None = None
    events: tuple[AssetEvent, ...] | None = ()
    artifact: UUID | None = None
    tick: datetime | None = None
    previous_tick: datetime | None = None
    traceparent: str = ""


def run_context_to_json(context: RunContext) -> dict[str, object]:
    """The run context as `{"assetflow": {...}}`, to be merged into the flow run's context."""
    data: dict[str, object] = {"version": VERSION, "consumer": context.consumer}
    if context.decision is not None:
        data["decision"] = str(context.decision)
    if context.partition_key is not None:
        data["partition_key"] = context.partition_key
    if context.events is not None:
        data["events"] = [event_to_json(event) for event in context.events]
    if context.artifact is not None:
        data["artifact"] = str(context.artifact)
    if context.traceparent:
        data["traceparent"] = context.traceparent
    for name, time in (("tick", context.tick), ("previous_tick", context.previous_tick)):
        if time is not None:
            data[name] = time.astimezone(UTC).isoformat()
    return {CONTEXT_KEY: data}


def run_context_from_json(context: Mapping[str, object] | None) -> RunContext | None:
    """The run context in a flow run's context; none if the run was not started by assetflow.

    Raises:
        InvalidEvent: it was written by a later version, or is damaged.
    """
    data = (context or {}).get(CONTEXT_KEY)
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise InvalidEvent("the run's context holds no assetflow data that can be read")
    data = cast(Json, data)
    check_version(data, "flow run context")
    events = data.get("events")
    decision, artifact = data.get("decision"), data.get("artifact")
    return RunContext(
        decision=None if decision is None else UUID(str(decision)),
        consumer=str(data.get("consumer", "")),
        partition_key=cast("str | None", data.get("partition_key")),
        events=None if events is None else tuple(event_from_json(e) for e in cast("Sequence[Json]", events)),
        artifact=None if artifact is None else UUID(str(artifact)),
        tick=_time(data.get("tick")),
        previous_tick=_time(data.get("previous_tick")),
        traceparent=str(data.get("traceparent", "")),
    )


def _time(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
