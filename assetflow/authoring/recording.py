"""`TaskRecording`: the outlets of a running attempt, its facts and measurements, and the events made of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from threading import Lock
from typing import TypeVar

from assetflow.authoring.checks import UNCHECKED, Check, DeclaredChecks
from assetflow.authoring.metadata import OutletEvents
from assetflow.authoring.origin import current_origin, is_deployed, run_logger, run_start
from assetflow.authoring.triggering import partition_key
from assetflow.core.values.assets import Asset, AssetAlias, Outlet
from assetflow.core.values.events import (
    SCHEMA,
    AssetEvent,
    CheckResult,
    Pin,
    Recording,
    event_id,
    fit_metrics,
    recording_id,
)
from assetflow.core.values.outcome import ResolveName, TaskOutcome, Update
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, CheckFailed, InvalidFlow, OutletError, RecordingFailed
from assetflow.prefect_io import recordings
from assetflow.prefect_io.rest import TaskApi
from assetflow.settings import get_settings

T = TypeVar("T")

_current: ContextVar[TaskRecording | None] = ContextVar("assetflow_recording", default=None)
_MEASURING = Lock()
_running: list[TaskRecording] = []


class TaskRecording:
    """The recording that an attempt of a task with outlets builds up while it runs.

    Attributes:
        outlets: the outlets of the task.
        task_run_id: the id of the task run, which all its attempts share.
        attempt: the number of the attempt; the first is 1.
        outcome: the facts that the task has stated so far.
        inputs: the newest update of each input, by URI, when the attempt started.
        keep_failed: where to keep data that a check has held back; `None` deletes it.

    Parameters:
        checks: the checks of the outlets.
        code_version: the version of the code that the task runs; that of an outlet counts before it (contract 8.2).
        resolve_name: returns the URI of a reference by name, or `None`.
    """

    def __init__(
        self,
        outlets: Iterable[Outlet],
        task_run_id: str,
        attempt: int,
        *,
        inputs: Mapping[str, Pin] | None = None,
        code_version: str | None = None,
        checks: DeclaredChecks = UNCHECKED,
        resolve_name: ResolveName = lambda _: None,
    ) -> None:
        self.outlets = tuple(outlets)
        self.task_run_id = task_run_id
        self.attempt = attempt
        self.outcome = TaskOutcome(self.outlets, resolve_name)
        self.inputs = dict(inputs or {})
        self.keep_failed = checks.keep_failed
        self._code_version = code_version
        own = {each.token for each in self.outlets if not isinstance(each, AssetAlias)}
        self._checks = {token.value: of for token, of in checks.of.items() if token in own}
        self._results: dict[tuple[str, str | None], Sequence[CheckResult]] = {}
        self._held_back: dict[tuple[Asset, str | None], Sequence[CheckResult]] = {}
        self._metrics: dict[tuple[str, str | None], dict[str, int | float]] = {}

    def measure(self, asset: Asset, metrics: Mapping[str, int | float], *, partition_key: str | None = None) -> None:
        """Add measurements to the event of an asset: rows, bytes, files, seconds. Repeated calls add up.

        `schema`, the id of a schema as a number, is that of the last call.

        Parameters:
            partition_key: the key of the partition that was written. The asset gets an event with this key.

        Raises:
            OutletError: the asset is not an outlet, and the task has no alias through which it could be updated.

        Contract 2.5.
        """
        try:
            self.outcome.check_outlet(asset)
            if partition_key is not None:
                self.outcome.add_partitions(asset, partition_key)
        except OutletError:
            # An asset that is added to an alias has the run's own key.
            if not any(isinstance(outlet, AssetAlias) for outlet in self.outlets):
                raise
        with _MEASURING:
            known = self._metrics.setdefault((asset.uri, partition_key), {})
            for name, value in metrics.items():
                known[name] = value if name == SCHEMA else known.get(name, 0) + value

    def checks_of(self, asset: Asset) -> Sequence[Check]:
        """Return the checks that the task declares for an asset."""
        return self._checks.get(asset.uri, ())

    def checked(self, asset: Asset, results: Sequence[CheckResult], *, partition_key: str | None = None) -> None:
        """Say what the checks found in data that was published. Contract 12.5."""
        self._results[asset.uri, partition_key] = results

    def held_back(self, asset: Asset, found: Mapping[str | None, Sequence[CheckResult]]) -> None:
        """Say what the checks found, by key, in data that one of them has held back. Contract 12.6."""
        failing = {key: results for key, results in found.items() if any(not each.passed for each in results)}
        self._held_back.update({(asset, key): results for key, results in failing.items()})

    def set_version(self, asset: Asset, version: str, *, partition_key: str | None = None) -> None:
        """Say which data version an asset has, or one of its partitions. Raises as `measure`. Contract 8.2."""
        try:
            if partition_key is None:
                self.outcome.set_version(asset, version)
            else:
                self.outcome.add_partitions(asset, {partition_key: version})
        except OutletError:
            # An asset that is added to an alias has the version that it is added with.
            if not any(isinstance(outlet, AssetAlias) for outlet in self.outlets):
                raise

    def wrote_no_partition(self, asset: Asset) -> None:
        """Say that a write of partitions had no rows: it updates nothing. Contract 2.5."""
        # An asset that is added to an alias is updated in any case.
        with suppress(OutletError):
            self.outcome.update_partitions_only(asset)

    def complete(self) -> Recording:
        """Return the recording of this attempt, which has just completed.

        Raises:
            RecordingFailed: a fact holds something that an update may not hold. Contract 2.7.
            InvalidEvent: the run's key cannot be a partition key.
            CheckFailed: an outlet has checks, and nothing that they have passed was published to it. Contract 12.2.
        """
        key = partition_key()
        for uri in self._checks.keys() - {uri for uri, _ in self._results}:
            raise CheckFailed(
                "the task has published nothing that its checks have passed, so it makes no update",
                where=uri,
                rule="12.2",
                fix="Return the DataFrame, or call publish(df, asset) or staged(asset)",
            )
        return self._told(self.outcome.updates(key), self.outcome.unchanged(key))

    def confirm(self) -> Recording:
        """Return the recording of this attempt, which skipped: its outlets are up to date. Contract 8.2.

        Raises as `complete`.
        """
        key = partition_key()
        skipped = [each for each in self.outcome.updates(key) if not each.aliases]
        return self._told((), (*skipped, *self.outcome.unchanged(key)))

    def fail(self) -> Recording:
        """Return the recording of this attempt, which has failed: what its checks have held back. Contract 12.6."""
        return Recording(recording_id(f"{self.task_run_id}|{self.attempt}"), held_back=self._prevented())

    def _prevented(self) -> tuple[AssetEvent, ...]:
        """Return the updates that checks have prevented, with ids of their own for each attempt."""
        origin, now = current_origin("task"), datetime.now(UTC)
        attempt = f"{self.task_run_id}|{self.attempt}"
        return tuple(
            AssetEvent(
                id=event_id(attempt, asset.uri, key, {}),
                asset=asset,
                occurred=now,
                origin=origin,
                partition_key=key,
                checks=tuple(results),
            )
            for (asset, key), results in self._held_back.items()
        )

    def _told(self, updates: Sequence[Update], confirmed: Sequence[Update]) -> Recording:
        # Outside of a deployment, a task that read nothing confirms nothing.
        says = is_deployed() or bool(self.inputs)
        return Recording(
            recording_id(self.task_run_id),
            self._events(updates),
            confirmed=self._events(confirmed if says else ()),
            held_back=self._prevented(),
        )

    def _events(self, updates: Sequence[Update]) -> tuple[AssetEvent, ...]:
        origin = current_origin("task") if updates else None
        now, started = datetime.now(UTC), run_start()
        return tuple(
            AssetEvent(
                id=update.event_id(self.task_run_id),
                asset=update.asset,
                occurred=now,
                origin=origin,
                extra=update.extra,
                partition_key=update.partition_key,
                aliases=update.aliases,
                metrics=self._measured(update),
                inputs={uri: pin.sequence for uri, pin in self.inputs.items()},
                read=self.inputs,
                code_version=update.asset.code_version or self._code_version,
                data_version=update.data_version,
                checks=tuple(_of_key(self._results, update, ())),
                started=started,
            )
            for update in updates
            if origin is not None
        )

    def _measured(self, update: Update) -> Mapping[str, int | float]:
        """Return the measurements of an update."""
        return fit_metrics(_of_key(self._metrics, update, {}))

    @contextmanager
    def active(self) -> Generator[TaskRecording]:
        """Make this the current recording of the block and of everything that the block calls or submits."""
        token = _current.set(self)
        _running.append(self)
        try:
            yield self
        finally:
            _running.remove(self)
            _current.reset(token)


def _of_key(known: Mapping[tuple[str, str | None], T], update: Update, default: T) -> T:
    """Return what is known of an update's key, else of the asset as a whole."""
    return known.get((update.asset.uri, update.partition_key), known.get((update.asset.uri, None), default))


def current_recording() -> TaskRecording | None:
    """Return the recording of the running task, or `None` outside of a task with outlets."""
    return _current.get()


def is_outlet_of_a_running_task(asset: Asset) -> bool:
    """Return True if a task that runs in this process, in whichever thread, declares the asset as an outlet."""
    return any(outlet == asset for recording in list(_running) for outlet in recording.outlets)


class CurrentOutletEvents(OutletEvents):
    """The outlet events of the running task, for code that imports the name.

    >>> from assetflow import Asset, outlet_events, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(outlets=[orders])
    ... def load():
    ...     outlet_events[orders].extra = {"rows": 3}

    It is also the default value of a task's parameter of the same name. `outlet_events()` returns the mapping of the
    running task, which you can pass to other code. Contract 2.3.

    Raises:
        InvalidFlow: no task with outlets is running.
    """

    def __init__(self) -> None:
        """Store nothing: each use looks up the task that is running at that moment."""

    def __call__(self) -> OutletEvents:
        return OutletEvents(self._outcome)

    def __repr__(self) -> str:
        return "<outlet_events of the running task>"

    def __reduce__(self) -> str:
        return "outlet_events"

    @property
    def _outcome(self) -> TaskOutcome:
        recording = _current.get()
        if recording is None:
            raise InvalidFlow(
                "outlet_events was used where no task with outlets runs",
                rule="2.3",
                fix="Use it inside a task that has outlets, as in @task(outlets=[orders]). A thread of the task needs "
                "its context: pool.submit(contextvars.copy_context().run, function)",
            )
        return recording.outcome


outlet_events = CurrentOutletEvents()


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
    with _durably(recording):
        api = TaskApi.connect(patience=get_settings().recording_timeout)
    with api:
        api.is_over = _is_over.get()
        with _durably(recording):
            stored = recordings.keep(api, recording)
        reach("between-record-and-event")
        _announce(api, stored)


def deliver_observation(recording: Recording) -> None:
    """Record what an observation saw, durably if it is another version than the one that was recorded last.

    Raises:
        RecordingFailed: as `deliver`.
    """
    with _durably(recording), TaskApi.connect(patience=get_settings().recording_timeout) as api:
        recordings.keep_observation(api, recording)


def _announce(api: TaskApi, recording: Recording) -> None:
    try:
        recordings.announce(api, recording)
    except AssetflowError as error:
        run_logger().warning(
            "The update is recorded, but could not be announced; flows that wait for it start "
            "when the evaluator reads the record. %s",
            error,
        )


@contextmanager
def _durably(recording: Recording) -> Generator[None]:
    """Turn what fails in the block, which is to make a recording durable, into the error of the attempt."""
    try:
        yield
    except AssetflowError as error:
        uris = list(dict.fromkeys(event.uri for event in recording.told))
        named = ", ".join(uris[:3]) + (f" and {len(uris) - 3} more" if len(uris) > 3 else "")
        raise RecordingFailed(
            f"the update of {named} could not be recorded. The data is written, and a retry of the task is safe. "
            f"{error}",
            fix="Retry the task when Prefect's API answers again",
        ) from error
