"""Send a recording to Prefect: first the artifact, which is durable, then the events, which are fast."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from assetflow.authoring.origin import run_logger
from assetflow.core.values.events import Recording
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, RecordingFailed
from assetflow.prefect_io import sending
from assetflow.prefect_io.task_api import TaskApi
from assetflow.settings import get_settings

_is_over: ContextVar[Callable[[], bool]] = ContextVar("assetflow_is_over", default=lambda: False)


@contextmanager
def sent_unless(is_over: Callable[[], bool]) -> Generator[None]:
    """Let `deliver`, in this block or in a thread that it starts, send nothing any more once the attempt is over."""
    token = _is_over.set(is_over)
    try:
        yield
    finally:
        _is_over.reset(token)


def deliver(recording: Recording) -> None:
    """Record updates durably and announce them.

    The same recording may be delivered several times. An announcement that fails is a warning in the run's log: the
    evaluator reads the artifacts too.

    Raises:
        RecordingFailed: the artifact could not be written within ASSETFLOW_RECORDING_TIMEOUT, or Prefect refused it.
    """
    if not recording.told:
        return
    try:
        api = TaskApi.connect(patience=get_settings().recording_timeout)
    except AssetflowError as error:
        raise _failed(recording, error) from error
    with api:
        api.is_over = _is_over.get()
        stored = _write_artifact(api, recording)
        reach("between-record-and-event")
        _announce(api, stored)


def deliver_observation(recording: Recording) -> None:
    """Record what an observation saw, durably if it is another version than the one that was recorded last.

    Raises:
        RecordingFailed: as `deliver`.
    """
    try:
        with TaskApi.connect(patience=get_settings().recording_timeout) as api:
            sending.keep_observation(api, recording)
    except AssetflowError as error:
        raise _failed(recording, error) from error


def _write_artifact(api: TaskApi, recording: Recording) -> Recording:
    try:
        return sending.keep(api, recording)
    except AssetflowError as error:
        raise _failed(recording, error) from error


def _announce(api: TaskApi, recording: Recording) -> None:
    try:
        sending.announce(api, recording)
    except AssetflowError as error:
        run_logger().warning(
            "The update is recorded, but could not be announced; flows that wait for it start "
            "when the evaluator reads the record. %s",
            error,
        )


def _failed(recording: Recording, error: AssetflowError) -> RecordingFailed:
    uris = list(dict.fromkeys(event.uri for event in recording.told))
    named = ", ".join(uris[:3]) + (f" and {len(uris) - 3} more" if len(uris) > 3 else "")
    return RecordingFailed(
        f"the update of {named} could not be recorded. The data is written, and a retry of the task is safe. {error}",
        fix="Retry the task when Prefect's API answers again",
    )
