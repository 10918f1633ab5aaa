"""Events: updates of assets, where they came from (contract chapter 2), and what checks of the data found (12)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Literal, NamedTuple, cast
from uuid import UUID, uuid5

from assetflow.core.json_data import check_json, fit_json, fit_number, fit_text
from assetflow.core.partitions import check_key
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.assets import RULE, Asset, AssetAlias, check_data_version
from assetflow.errors import AssetflowError, InvalidEvent, TooLarge

Severity = Literal["error", "warn"]


@shape
class CheckResult:
    """What one check found in the data of one update.

    >>> from assetflow import AssetEvent
    >>> def failed_checks(event: AssetEvent) -> list[str]:
    ...     return [result.check for result in event.checks if not result.passed]

    Contract 12.5.

    Attributes:
        check: the name of the check.
        severity: "error" if its failure holds the data back, "warn" if it only warns.
        passed: True if the data keeps the rule.
        wanted: the rule, in words.
        found: the number that was compared, such as the number of rows that break the rule; `None` without one.
        note: what else there is to say: the cause, if the check could not be made.
        sample: some of the rows that break the rule, with secrets redacted.
    """

    check: str
    severity: Severity
    passed: bool
    wanted: str
    found: int | float | None = None
    note: str = ""
    sample: tuple[Mapping[str, object], ...] = ()

    def describe(self) -> str:
        """Return the result in words: `no_nulls(id): found 3, wanted no nulls in id`."""
        found = () if self.found is None else (f"found {self.found:,}",)
        note = (self.note,) if self.note else ()
        rows = (f"such as {json.dumps(self.sample[0], ensure_ascii=False)}",) if self.sample else ()
        return f"{self.check}: " + ", ".join([*found, f"wanted {self.wanted}", *note, *rows])


@shape
class CheckedData:
    """What the checks of an asset found at one time."""

    at: datetime
    partition_key: str | None
    event_id: UUID | None
    """The update; null if a check held the data back."""
    flow_run_id: UUID | None
    checks: tuple[CheckResult, ...]


@shape
class CheckHistory:
    """What the checks of an asset found lately."""

    uri: str
    history: Sequence[CheckedData]
    """The newest first."""


_NAMESPACE = UUID("6f0c1a52-6a0e-5a55-9a5e-1f5f3d2b7c11")

EXTRA_BYTES = 64 * 1024
OriginKind = Literal["task", "api", "cli", "prefect", "watcher"]


@shape
class SourceTaskRun:
    """The Prefect task run that made an update.

    >>> from assetflow import AssetEvent
    >>> def task_of(event: AssetEvent) -> str:
    ...     return "" if event.source_task_run is None else event.source_task_run.name

    Contract 7.3.

    Attributes:
        id: the id of the task run.
        name: its name, such as `load-4f1`.
    """

    id: UUID
    name: TextOrNull = ""


@shape
class SourceFlowRun:
    """The Prefect flow run in which an update was made.

    >>> from assetflow import AssetEvent
    >>> def maker_of(event: AssetEvent) -> str:
    ...     run = event.source_flow_run
    ...     return "nobody" if run is None else f"{run.flow_name}/{run.deployment_name}"

    Contract 7.3.

    Attributes:
        id: the id of the flow run.
        name: its name, such as `amber-fox`.
        flow_id, flow_name: its flow.
        deployment_id, deployment_name: its deployment; `None` and "" for a run without one.
        parameters: its parameters; `None` if they were too large to travel with the event.
        scheduled_time: when the run was due, UTC.
        data_interval_start: the time before `data_interval_end` in the run's time schedule, UTC; `None` if it has none.
        data_interval_end: the run's own time in its time schedule, UTC; `None` if it has none.
    """

    id: UUID
    name: TextOrNull = ""
    flow_id: UUID | None = None
    flow_name: TextOrNull = ""
    deployment_id: UUID | None = None
    deployment_name: TextOrNull = ""
    parameters: Mapping[str, object] | None = None
    """Null if they were too large to travel with the event."""
    scheduled_time: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None


@shape
class Origin:
    """Where an event came from: a task, the API, the command line, Prefect or a watcher.

    Attributes:
        task_run, flow_run: the Prefect runs that made it; `None` if no task did.
        by: who made it, for an event from the API, the command line or Prefect.
        traceparent: the span in which it was made, as a W3C `traceparent`; "" without tracing.
    """

    kind: OriginKind
    task_run: SourceTaskRun | None = None
    flow_run: SourceFlowRun | None = None
    by: TextOrNull = ""
    traceparent: TextOrNull = ""


Content = tuple[str, str | None, Mapping[str, object], str | None]
"""What an update says: URI, partition key, extra and data version (contract 2.1). A tuple, for each event makes one."""


def is_recorded_as(content: Content, recorded: Content) -> bool:
    """Return True if an event with this content was recorded as `recorded`: the ledger adds a data version."""
    return content[:3] == recorded[:3] and content[3] in (None, recorded[3])


class Pin(NamedTuple):
    """The version of an input that a task read: its newest update when the attempt started. Contract 8.2.

    Attributes:
        sequence: its place in the ledger that the task asked.
        event: its id, which another ledger knows too.
        recorded: its instant, UTC, for a ledger that does not know the id.
    """

    sequence: int
    event: UUID
    recorded: datetime


@dataclass(frozen=True, eq=False, slots=True)
class AssetEvent:
    """One update of one asset. Two events are equal if their ids are equal.

    >>> from assetflow import Asset, flow, triggering_asset_events
    >>> orders = Asset("s3://shop/orders")
    >>> @flow(schedule=orders)
    ... def report(triggering_asset_events=triggering_asset_events):
    ...     for event in triggering_asset_events[orders]:
    ...         print(event.timestamp, event.extra, event.metrics.get("rows"))

    Contract 2.2, 7.3.

    Attributes:
        id: the event's id; two deliveries with the same id are one event.
        asset: the asset, with name, group and extra as the producer declared them.
        occurred: when the update happened, by the producer's clock, UTC.
        origin: who made the event: a task, the API, the command line, Prefect.
        extra: what the task said about the update, a JSON object (contract 2.3).
        partition_key: the key of the partition that was updated, or `None`.
        aliases: the names of the aliases through which the update came, sorted.
        metrics: what was measured while the data was written: `rows`, `bytes`, `files`, `seconds`.
        code_version: that of the code that made the update; `None` if it has none.
        data_version: equal for two updates with the same data; `None` if nobody gave one and the ledger has not
            recorded the event, or compares it with nothing (contract 8.2).
        inputs: the inlets and triggering assets of the task, each URI with its newest sequence when the task started.
        read: the same by the ids of the events; empty for an event that comes from a ledger.
        checks: what the checks of the data found before it became visible (contract 12.5).
        sequence: the event's place in the ledger; `None` until it is recorded.
        recorded: when it was recorded, UTC; `None` until it is.
        started: when the run that made it began, UTC; `None` if no run did.
    """

    id: UUID
    asset: Asset
    occurred: datetime
    origin: Origin
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    aliases: tuple[str, ...] = ()
    metrics: Mapping[str, int | float] = field(default_factory=dict[str, "int | float"])
    code_version: str | None = None
    data_version: str | None = None
    inputs: Mapping[str, int] = field(default_factory=dict[str, int])
    read: Mapping[str, Pin] = field(default_factory=dict[str, Pin])
    checks: tuple[CheckResult, ...] = ()
    sequence: int | None = None
    recorded: datetime | None = None
    started: datetime | None = None

    @property
    def uri(self) -> str:
        """The URI of the updated asset."""
        return self.asset.uri

    @property
    def content(self) -> Content:
        """The parts that tell two updates of one task run apart. Contract 2.1."""
        return self.asset.uri, self.partition_key, self.extra, self.data_version

    @property
    def timestamp(self) -> datetime:
        """When the update occurred, by the producer's clock, UTC (Airflow's name)."""
        return self.occurred

    @property
    def source_task_run(self) -> SourceTaskRun | None:
        """The Prefect task run that made the event; `None` if no task did."""
        return self.origin.task_run

    @property
    def source_flow_run(self) -> SourceFlowRun | None:
        """The Prefect flow run in which the event was made; `None` outside of a flow."""
        return self.origin.flow_run

    def in_ledger(self, sequence: int, recorded: datetime) -> AssetEvent:
        """Return the event with its sequence and the time at which the ledger recorded it."""
        # This is a quicker `dataclasses.replace`, because each event is copied here once.
        placed = object.__new__(AssetEvent)
        for keep, value in zip(_KEEP, (*_WITHOUT_PLACE(self), sequence, recorded), strict=True):
            keep(placed, value)
        return placed

    def __getstate__(self) -> dict[str, object]:
        # By name, so that another version of assetflow can read the pickle.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, AssetEvent) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)


SCHEMA = "schema"
"""The metric that is the id of the schema of the data, as a number. Where it changes, the columns or types changed."""

_PLACE = ("sequence", "recorded")
_COPIED = [each.name for each in fields(AssetEvent) if each.name not in _PLACE]
_WITHOUT_PLACE: Callable[[AssetEvent], tuple[object, ...]] = attrgetter(*_COPIED)
_KEEP: list[Callable[[AssetEvent, object], None]] = [getattr(AssetEvent, name).__set__ for name in (*_COPIED, *_PLACE)]


@dataclass(frozen=True)
class Recording:
    """All events of one task run or of one API call. One transaction records them, and one pass follows. Contract 4.3.

    Attributes:
        id: the recording's id, which is the same each time that the recording is delivered.
        durable: when Prefect stored it, by Prefect's clock, UTC; `None` if the ledger is the first to store it (9.6).
        confirmed: the updates that a skipped task did not have to make: its outlets are up to date (8.2).
        observed: what was seen of sources: an update where the data version is not the newest one (8.2).
        held_back: the updates that a failed check has prevented (12.6).
    """

    id: UUID
    events: tuple[AssetEvent, ...] = ()
    durable: datetime | None = None
    confirmed: tuple[AssetEvent, ...] = ()
    observed: tuple[AssetEvent, ...] = ()
    held_back: tuple[AssetEvent, ...] = ()

    @property
    def told(self) -> tuple[AssetEvent, ...]:
        """Everything that the recording says of assets."""
        return (*self.events, *self.confirmed, *self.observed, *self.held_back)


def recording_id(task_run_id: UUID | str) -> UUID:
    """Return the id of a task run's recording: the same for each attempt and each delivery."""
    return uuid5(_NAMESPACE, f"recording|{task_run_id}")


def event_id(
    task_run_id: UUID | str,
    uri: str,
    partition_key: str | None,
    extra: Mapping[str, object],
    *,
    aliased: bool = False,
    data_version: str | None = None,
) -> UUID:
    """Return the id of an event that a task makes: the same for each attempt with the same content. Contract 2.1.

    Parameters:
        aliased: True if the update came through aliases. If the asset is an outlet too, that is another event.
    """
    kind = "alias-event" if aliased else "event"
    version = () if data_version is None else (data_version,)
    told = (kind, str(task_run_id), uri, partition_key or "", canonical_json(extra), *version)
    return uuid5(_NAMESPACE, "|".join(told))


def canonical_json(value: object) -> str:
    """Return the same JSON text for equal values: ASCII, with sorted keys and without white space."""
    return _CANONICAL.encode(value)


def check_extra(extra: object, *, where: str = "", path: str = "extra") -> dict[str, object]:
    """Return a copy of an extra as plain JSON data, and `{}` for `None`. Contract 2.2, 2.7.

    Parameters:
        where: the place that the error names: a task, an asset, an option.
        path: what the error calls the extra.

    Raises:
        InvalidEvent: the extra is not a JSON object, or breaks contract 2.7.
        TooLarge: it has more than 64 KiB as JSON.
    """
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        raise InvalidEvent(
            f"{path} is of type {type(extra).__name__}, not a JSON object",
            where=where,
            rule="2.2",
            fix='Write {"rows": 1}',
        )
    checked = cast("dict[str, object]", check_json(cast(object, extra), path, where=where))
    size = len(json.dumps(checked, ensure_ascii=False, separators=(",", ":")).encode())
    if size > EXTRA_BYTES:
        raise TooLarge(
            f"the {path} has {size} bytes, the limit is {EXTRA_BYTES}",
            where=where,
            rule="2.7",
            fix="Store the data elsewhere, and give a link to it",
        )
    return checked


def fit_metrics(metrics: object) -> dict[str, int | float]:
    """Return the metrics of an event without those that are not finite numbers within 64 bits. Contract 2.7."""
    if not isinstance(metrics, Mapping):
        return {}
    numbers = {
        fit_text(name): fit_number(value)
        for name, value in cast("Mapping[object, object]", metrics).items()
        if isinstance(name, str)
    }
    return {name: number for name, number in numbers.items() if number is not None}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"{value!r} is a {type(value).__name__}")


# Making an encoder takes longer than encoding most values.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def event_by_hand(
    asset: Asset,
    *,
    id: UUID,  # noqa: A002 (the event's word for it)
    occurred: datetime,
    origin: Origin,
    extra: object = None,
    partition_key: object = None,
    aliases: Iterable[AssetAlias | str] = (),
    data_version: object = None,
) -> AssetEvent:
    """Return the event of an update that no task made.

    Contract 2.6.

    Parameters:
        id: the event's id.
        occurred: when the update happened, with a time zone.
        extra: a JSON object; `None` stands for an empty one.
        aliases: the aliases that the update comes through, or their names.
        data_version: the version of the data (contract 8.2); `None` if the update is a new one.

    Raises:
        InvalidEvent, InvalidAsset: an argument breaks chapter 1 or 2, or rule 8.2, of the contract. `where` is `extra`,
            `partition_key`, `aliases` or `data_version`.
        TooLarge: the extra is larger than 64 KiB as JSON. `where` is `extra`.
    """
    details = check_extra(extra, where="extra")
    return AssetEvent(
        id=id,
        asset=asset,
        occurred=occurred,
        origin=origin,
        extra=details,
        partition_key=None if partition_key is None else key_by_hand(partition_key),
        aliases=_names(aliases),
        data_version=None if data_version is None else check_data_version(data_version, where="data_version"),
    )


def key_by_hand(key: object) -> str:
    """Return a partition key that a person or program gave, unchanged.

    Raises:
        InvalidEvent: the key breaks contract 2.5. `where` is `partition_key`.
    """
    try:
        return check_key(key)
    except AssetflowError as error:
        raise error.at("partition_key") from error


def _names(aliases: Iterable[AssetAlias | str]) -> tuple[str, ...]:
    try:
        return tuple(sorted({each.name if isinstance(each, AssetAlias) else AssetAlias(each).name for each in aliases}))
    except AssetflowError as error:
        raise error.at("aliases") from error


# The version of each key; that of `None` is the version of the asset as a whole.
Versions = Mapping[str | None, str]


def read_versions(found: object, *, partitions: bool, where: str = "") -> Versions:
    """Return the versions that an observation saw, checked.

    Parameters:
        found: a text; with `partitions`, a mapping from keys to texts.
        where: the place that an error names.

    Raises:
        InvalidEvent: it is not that, or a key or a version breaks contract 2.5 or 8.2.
    """
    if not partitions:
        return {None: check_data_version(found, "the version that was observed", where=where)}
    if not isinstance(found, Mapping):
        raise InvalidEvent(
            f"the observation is {found!r}, not a mapping", where=where, rule=RULE, fix='Return {"key": "version"}'
        )
    return {
        check_key(key): check_data_version(version, f"the version of {key!r} that was observed", where=where)
        for key, version in cast("Mapping[object, object]", found).items()
    }


def observation(asset: Asset, versions: Versions, *, id: UUID, occurred: datetime, origin: Origin) -> Recording:  # noqa: A002
    """Return the recording of an observation; the ledger decides which of the versions are updates.

    Parameters:
        id: the id of the task run or the request that observed. The same id gives the same recording.
        occurred: when the versions were seen, UTC.
    """
    return Recording(
        recording_id(id),
        observed=tuple(
            AssetEvent(
                event_id(id, asset.uri, key, {}, data_version=version),
                asset,
                occurred,
                origin,
                partition_key=key,
                data_version=version,
            )
            for key, version in versions.items()
        ),
    )


MOST_CHARACTERS = 16 * 1024
_MOST_OF_A_TEXT = 2 * 1024


def kept_payload(given: object) -> object:
    """Return a refused payload as JSON data that the ledger can hold and a person can read.

    A payload over 16,384 characters of JSON is cut: its long texts, such as the data of an artifact, to 2,048
    characters each. If that is not enough, the whole is cut to the first 2,048 characters of its JSON.
    """
    fitted = fit_json(given)
    written = canonical_json(fitted)
    if len(written) <= MOST_CHARACTERS:
        return fitted
    if isinstance(fitted, Mapping):
        shorter = {key: _shorter(value) for key, value in cast("Mapping[str, object]", fitted).items()}
        if len(canonical_json(shorter)) <= MOST_CHARACTERS:
            return shorter
    return {"cut": written[:_MOST_OF_A_TEXT], "characters": len(written)}


def _shorter(value: object) -> object:
    if not isinstance(value, str) or len(value) <= _MOST_OF_A_TEXT:
        return value
    return f"{value[:_MOST_OF_A_TEXT]}… (cut; it had {len(value)} characters)"
