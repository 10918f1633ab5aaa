"""Send a recording to Prefect: first the artifact, which makes it durable, then the events, which arrive at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from assetflow.core.events import Recording
from assetflow.prefect_io.recordings import created, recording_to_artifact, recording_to_prefect_events
from assetflow.prefect_io.task_api import TaskApi

# The artifact has everything: if the server is too busy for the events, the evaluator only learns of the update later.
SECONDS_FOR_EVENTS = 5.0
_EVENTS_A_POST = 100


def keep(api: TaskApi, recording: Recording) -> Recording:
    """Write the artifact of a recording, which makes its updates durable; return the recording with that instant.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    stored = cast("Mapping[str, object]", api.post("/artifacts/", recording_to_artifact(recording)) or {})
    return replace(recording, durable=created(stored)) if "created" in stored else recording


def announce(api: TaskApi, recording: Recording) -> None:
    """Post the events of a recording, so that the evaluator learns of it at once.

    Raises:
        PrefectUnreachable, PrefectRefused: the evaluator finds the artifact within seconds anyway.
    """
    events = recording_to_prefect_events(recording)
    for start in range(0, len(events), _EVENTS_A_POST):
        api.post("/events", events[start : start + _EVENTS_A_POST], patience=SECONDS_FOR_EVENTS)
