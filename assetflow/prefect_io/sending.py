"""Send a recording to Prefect: first the artifact, which makes it durable, then the events, which arrive at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assetflow.core.values.events import Recording
from assetflow.errors import AssetflowError
from assetflow.prefect_io.answers import id_of, objects_of
from assetflow.prefect_io.recordings import (
    created,
    recording_from_artifact,
    recording_to_artifact,
    recording_to_prefect_events,
)
from assetflow.prefect_io.task_api import TaskApi

# The artifact has everything: if the server is too busy for the events, the evaluator only learns of the update later.
SECONDS_FOR_EVENTS = 5.0
_EVENTS_A_POST = 100
# Two observations at the same time leave two of them, which the next one replaces.
_MOST_SEEN = 20
_SEEN = "seen-"

Versions = Mapping[str | None, str | None]


def keep(api: TaskApi, recording: Recording) -> Recording:
    """Write the artifact of a recording, which makes its updates durable; return the recording with that instant.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    stored = api.create("/artifacts/", recording_to_artifact(recording))
    return replace(recording, durable=created(stored)) if "created" in stored else recording


def keep_observation(api: TaskApi, recording: Recording) -> None:
    """Write what an observation saw of a source.

    If Prefect has another version, or none, that becomes an artifact of its own, which stays: the ledger may make an
    update of it. Otherwise one artifact for each source, which the next one replaces, says when the version was seen
    last. Contract 8.2.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    body = recording_to_artifact(recording)
    (newest, *_) = [*_artifacts(api, body["key"], 1), None]
    if newest is None or _versions_in(newest) != _versions_of(recording):
        api.create("/artifacts/", body)
        return
    key = f"{_SEEN}{body['key']}"
    before = _artifacts(api, key, _MOST_SEEN)
    api.create("/artifacts/", {**body, "key": key})
    for each in before:
        api.delete(f"/artifacts/{id_of(each)}")


def _artifacts(api: TaskApi, key: object, limit: int) -> Sequence[Mapping[str, object]]:
    """Return the newest artifacts with a key."""
    body = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC", "limit": limit}
    return objects_of(api.post("/artifacts/filter", body))


def _versions_in(artifact: Mapping[str, object]) -> Versions | None:
    """Return the versions that an artifact tells of, by key; `None` if it cannot be read."""
    try:
        return _versions_of(recording_from_artifact(artifact))
    except AssetflowError:
        return None


def _versions_of(recording: Recording) -> Versions:
    return {event.partition_key: event.data_version for event in recording.told}


def announce(api: TaskApi, recording: Recording) -> None:
    """Post the events of a recording, so that the evaluator learns of it at once.

    Raises:
        PrefectUnreachable, PrefectRefused: the evaluator finds the artifact within seconds anyway.
    """
    events = recording_to_prefect_events(recording)
    for start in range(0, len(events), _EVENTS_A_POST):
        api.post("/events", events[start : start + _EVENTS_A_POST], patience=SECONDS_FOR_EVENTS)
