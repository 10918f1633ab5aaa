"""What one attempt of a task records: its outlets, what it said about them, what was measured, and the events of it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from assetflow.authoring.origin import current_origin
from assetflow.authoring.outlet_events import OutletEvents
from assetflow.authoring.triggering import partition_key
from assetflow.core.assets import Asset, AssetAlias, Outlet
from assetflow.core.events import AssetEvent, Recording, recording_id
from assetflow.core.outcome import ResolveName, TaskOutcome, Update
from assetflow.errors import InvalidFlow, OutletError

_current: ContextVar[TaskRecording | None] = ContextVar("assetflow_recording", default=None)


class TaskRecording:
    """What the running attempt of a task with outlets records when it ends.

    Attributes:
        outlets: the outlets of the task.
        task_run_id: id of the task run; the same for each attempt.
        attempt: 1 for the first attempt of the task run.
        outcome: what the task said so far.

    Parameters:
        inputs: URI to the newest sequence known when the task started (contract 8).
        resolve_name: finds the URI of a reference by name.
    """

    def __init__(
        self,
        outlets: Iterable[Outlet],
        task_run_id: str,
        attempt: int,
        *,
        inputs: Mapping[str, int] | None = None,
        resolve_name: ResolveName = lambda _: None,
    ) -> None:
        self.outlets = tuple(outlets)
        self.task_run_id = task_run_id
        self.attempt = attempt
        self.outcome = TaskOutcome(self.outlets, resolve_name)
        self._inputs = dict(inputs or {})
        self._metrics: dict[tuple[str, str | None], dict[str, int | float]] = {}

    def measure(self, asset: Asset, metrics: Mapping[str, int | float], *, partition_key: str | None = None) -> None:
        """Add measurements to the event of an asset: rows, bytes, files, seconds. Numbers of several writes add up.

        Parameters:
            partition_key: the partition that was written: the asset gets an event with this key (2.5).

        Raises:
            OutletError: the asset is no outlet, and there is no alias through which it could be updated.
        """
        try:
            self.outcome.check_outlet(asset)
            if partition_key is not None:
                self.outcome.add_partitions(asset, partition_key)
        except OutletError:
            # What is added to an alias has the run's own key.
            if not any(isinstance(outlet, AssetAlias) for outlet in self.outlets):
                raise
        known = self._metrics.setdefault((asset.uri, partition_key), {})
        for name, value in metrics.items():
            known[name] = known.get(name, 0) + value

    def complete(self) -> Recording:
        """The recording of this attempt, which completed now.

        Raises:
            InvalidEvent: what the task said is not JSON, or the run's key is no key.
        """
        updates = self.outcome.updates(partition_key())
        origin = current_origin("task") if updates else None
        now = datetime.now(UTC)
        events = [
            AssetEvent(
                id=update.event_id(self.task_run_id),
                asset=update.asset,
                occurred=now,
                origin=origin,
                extra=update.extra,
                partition_key=update.partition_key,
                aliases=update.aliases,
                metrics=self._measured(update),
                inputs=self._inputs,
            )
            for update in updates
            if origin is not None
        ]
        return Recording(recording_id(self.task_run_id), tuple(events))

    def _measured(self, update: Update) -> Mapping[str, int | float]:
        """What was measured for the key of an update; without keys, for its asset as a whole."""
        whole = self._metrics.get((update.asset.uri, None), {})
        return self._metrics.get((update.asset.uri, update.partition_key), whole)

    @contextmanager
    def active(self) -> Generator[TaskRecording]:
        """Make it the recording of the code in the block, and of what that calls or submits."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


def current_recording() -> TaskRecording | None:
    """The recording of the task with outlets that runs here; none outside of one."""
    return _current.get()


def outlet_events() -> OutletEvents:
    """`outlet_events()[asset].extra = {...}`: what the running task says about its outlets.

    Raises:
        InvalidFlow: no task with outlets runs here.
    """
    recording = _current.get()
    if recording is None:
        raise InvalidFlow(
            "outlet_events() was called where no task with outlets runs",
            rule="2.3",
            fix="Call it in a task that has outlets, as in @task(outlets=[orders])",
        )
    return OutletEvents(recording.outcome)
