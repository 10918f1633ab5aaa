"""`observe`, `emit` and `status`: record updates without a task, and ask whether assets are up to date."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Unpack, cast, overload
from urllib.parse import quote
from uuid import UUID, uuid4

import prefect
from prefect.context import TaskRunContext

from assetflow.authoring.flows import AssetFlow, flow
from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.origin import current_origin
from assetflow.authoring.past_events.sources import resolve_name
from assetflow.authoring.recording import deliver, deliver_observation
from assetflow.authoring.remote import RemoteApi
from assetflow.authoring.schedule_options import PrefectFlowOptions
from assetflow.core.explain.status import Status
from assetflow.core.shapes import from_json
from assetflow.core.time.timetables import Timetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AssetLike
from assetflow.core.values.events import AssetEvent, Recording, Versions, event_by_hand, observation, read_versions
from assetflow.core.values.schedule_values import to_schedule
from assetflow.errors import (
    ApiNotAllowed,
    ApiRefused,
    ApiUnreachable,
    InvalidCall,
    InvalidEvent,
    InvalidFlow,
    InvalidSchedule,
    LedgerError,
    UnknownAsset,
    places,
)
from assetflow.settings import get_settings


def observe(
    source: Asset | AssetLike,
    /,
    *,
    every: timedelta | str | Timetable,
    partitions: bool = False,
    **options: Unpack[PrefectFlowOptions],
) -> Callable[[Callable[..., Any]], AssetFlow[..., Any]]:
    """Turn a function that looks at a source into a flow that records an update whenever its version has changed.

    >>> from datetime import timedelta
    >>> from pathlib import Path
    >>> from assetflow import Asset, observe
    >>> raw = Asset("file:/data/raw.csv")
    >>> @observe(raw, every=timedelta(minutes=5))
    ... def raw_version() -> str:
    ...     return str(Path("/data/raw.csv").stat().st_mtime_ns)

    The flow is deployed and served like any other. An exception in the function, or a value that is not a version,
    fails the flow run and changes nothing. With ASSETFLOW_API_URL the observation goes to assetflow's API, if that
    answers and the API key may send updates. Otherwise, a new version is an artifact in Prefect, and one that was seen
    before replaces the last such artifact of the source.

    Contract 8.2.

    Parameters:
        source: the asset. No deployed flow may make it.
        every: when to look: a `timedelta`, a cron text in UTC, or a timetable. One look makes up for all that were
            missed (contract 6.1).
        partitions: True if the function returns a mapping from partition keys to versions. Otherwise it returns one
            version, a text of 1 to 250 characters.
        options: everything that Prefect's `flow` takes.

    Returns:
        An `AssetFlow`, with the signature of the function.

    Raises:
        InvalidFlow: `source` is not an asset.
        InvalidSchedule: `every` is not a time schedule.
    """
    asset = source if isinstance(cast("object", source), str) else to_outlet(source)
    if not isinstance(asset, Asset):
        raise InvalidFlow(f"{source!r} cannot be observed", rule="8.2", fix='Write Asset("s3://bucket/orders")')
    if not isinstance(cast("object", every), timedelta | str | Timetable):
        raise InvalidSchedule(
            f"`every` must be a timedelta, a cron text or a timetable, not {every!r}",
            rule="8.2",
            fix="Write timedelta(minutes=5)",
        )

    timetable = to_schedule(every).timetable
    assert timetable is not None, "it is a time schedule"

    def decorate(function: Callable[..., Any]) -> AssetFlow[..., Any]:
        # A look at the past finds nothing.
        return flow(schedule=replace(timetable, catchup="latest"), **options)(_body(function, asset, partitions))

    return decorate


def _body(function: Callable[..., Any], asset: Asset, partitions: bool) -> Callable[..., Any]:
    """Return the flow's function: it calls the user's, and a task records what that has seen."""
    where = f"observation of {asset.uri}"

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        found: object = function(*args, **kwargs)
        _record(asset, read_versions(found, partitions=partitions, where=where))
        return found

    @wraps(function)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        found: object = await function(*args, **kwargs)
        await asyncio.to_thread(_record, asset, read_versions(found, partitions=partitions, where=where))
        return found

    return run_async if inspect.iscoroutinefunction(function) else run


@prefect.task(name="record the observation")
def _record(asset: Asset, versions: Versions) -> None:
    context = TaskRunContext.get()
    assert context is not None, "Prefect calls it as a task"
    if versions and not _told_to_api(asset, versions):
        origin = current_origin("task")
        seen = observation(asset, versions, id=context.task_run.id, occurred=datetime.now(UTC), origin=origin)
        deliver_observation(seen)


def _told_to_api(asset: Asset, versions: Versions) -> bool:
    """Send an observation to assetflow's API, and return True if that has taken it.

    An API key that may only read, with which tasks read past events, is not an error: Prefect takes the observation.

    Raises:
        ApiRefused: the API refuses it, because a flow makes the asset or the API key is wrong.
    """
    if not get_settings().api_url:
        return False
    try:
        with RemoteApi.of_settings() as api:
            api.observe(asset, versions)
    except (ApiUnreachable, ApiNotAllowed):
        return False
    return True


@overload
def status(asset: Asset | AssetLike | str, partition_key: str | None = None) -> Status: ...
@overload
def status() -> list[Status]: ...
def status(asset: Asset | AssetLike | str | None = None, partition_key: str | None = None) -> Status | list[Status]:
    """Return whether an asset is up to date, and if not, what has changed since it was made.

    >>> from assetflow import status
    >>> def test_the_board_is_up_to_date():
    ...     found = status("s3://lake/board")
    ...     assert found.state == "fresh", [cause.words for cause in found.causes]

    It reads the ledger on this machine, or, without one, the API at `ASSETFLOW_API_URL`. Contract 8.9.

    Parameters:
        asset: the asset, its name or its URI; without it, all assets that Eager and Lazy flows need.
        partition_key: the key of one partition.

    Returns:
        The status of the asset; without an asset, a list, by URI.

    Raises:
        InvalidCall: there is a key, and no asset.
        UnknownAsset: no flow names the asset, and it was never updated.
        LedgerError: there is no ledger on this machine, and no address of an API; or the ledger cannot be read.
        ApiUnreachable, ApiRefused: the API does not answer as expected.
    """
    if asset is None and partition_key is not None:
        raise InvalidCall("a partition key needs an asset", fix="Write status(asset, partition_key)")
    text = None if asset is None else _called(asset)
    return _remote(text, partition_key) if get_settings().uses_api else _local(text, partition_key)


def _called(asset: Asset | AssetLike | str) -> str:
    target = asset if isinstance(asset, str) else to_outlet(asset)
    if isinstance(target, str):
        return target
    if isinstance(target, Asset | AssetRef):
        return target.uri or cast(AssetRef, target).name or ""
    raise InvalidCall(f"{asset!r} is not an asset", fix="Give an asset, its name or its URI")


def _local(text: str | None, key: str | None) -> Status | list[Status]:
    from assetflow.ledger.read.reader import Reader

    with Reader.open() as reader:
        if text is None:
            return reader.freshness.statuses(None, datetime.now(UTC))
        uri = reader.assets.uris_called([text]).get(text) or Asset(text).uri
        if not reader.assets.numbers([uri]):
            raise _unknown(text)
        return reader.freshness.status(uri, key, datetime.now(UTC))


def _remote(text: str | None, key: str | None) -> Status | list[Status]:
    with RemoteApi.of_settings() as api:
        if text is None:
            return [from_json(Status, each) for each in api.items("/api/v1/statuses")]
        answer = api.get(f"/api/v1/assets/{quote(text, safe='')}/status", {} if key is None else {"partition_key": key})
    if answer is None:
        raise _unknown(text)
    return from_json(Status, answer)


def _unknown(text: str) -> UnknownAsset:
    return UnknownAsset(f"no asset is called {text!r}", fix="`assetflow assets ls` lists the assets")


def emit(
    asset: Asset | AssetLike | str,
    extra: Mapping[str, object] | None = None,
    *,
    partition_key: str | None = None,
    aliases: Iterable[AssetAlias | str] = (),
    data_version: str | None = None,
    id: UUID | str | None = None,  # noqa: A002 (the event's word for it)
    to: str | None = None,
    api_key: str = "",
) -> AssetEvent:
    """Record that an asset was updated, from anywhere: a script, a notebook, a service.

    >>> from assetflow import emit
    >>> event = emit("s3://shop/orders", {"rows": 12}, partition_key="2026-11-20")
    >>> event.uri, event.partition_key
    ('s3://shop/orders', '2026-11-20')

    When `emit` returns, the update is durable. In a task use `outlets=` instead: those updates count only if the task
    completes. Contract 2.6.

    Parameters:
        asset: the asset, its URI or its name.
        extra: facts about the update, a JSON object (contract 2.7).
        partition_key: the key of the partition that was updated, a text of at most 250 characters.
        aliases: the aliases through which the asset is updated, or their names.
        data_version: the version of the data, a text of 1 to 250 characters, such as an ETag. An update with the
            version of the one before is not new data for Eager flows (contract 8.2); without one, each update is new.
        id: the event's id, a UUID. Two calls with one id record one event (contract 2.2); without it, each call records
            a new event.
        to: the address of assetflow's API in another environment, such as `https://flows.example.org`, to record the
            update there instead of here.
        api_key: the API key of the API at `to`: its `ASSETFLOW_API_KEY_EMIT`.

    Returns:
        The event, with its id. Its `timestamp` is the current time in UTC, and it has no `sequence` yet.

    Raises:
        InvalidCall: `api_key` is given without `to`.
        InvalidAsset: the URI or an alias breaks contract 1.4, 1.5 or 1.7.
        InvalidEvent: `extra`, `partition_key`, `id` or `data_version` breaks contract 2.2, 2.5, 2.7 or 8.2.
        TooLarge: `extra` is larger than 64 KiB as JSON.
        RecordingFailed: Prefect, or the other environment, did not take the update. Calling again with the same
            `id` is safe.
    """
    if api_key and to is None:
        raise InvalidCall(
            "emit(api_key=...) needs to=: an update that is recorded here uses no API key",
            fix='Write to="https://flows.example.org", or leave out api_key=',
        )
    target = _target(asset, here=to is None) if isinstance(asset, str) else to_outlet(asset)
    if not isinstance(target, Asset):
        raise InvalidEvent(f"{asset!r} is not an asset", rule="2.6", fix='Write Asset("s3://bucket/orders")')
    number = _event_id(id)
    with places(**dict.fromkeys(("extra", "partition_key", "aliases", "data_version"), target.label)):
        event = event_by_hand(
            target,
            id=number,
            occurred=datetime.now(UTC),
            origin=current_origin("api"),
            extra=extra,
            partition_key=partition_key,
            aliases=aliases,
            data_version=data_version,
        )
    if to is None:
        deliver(Recording(event.id, (event,)))
    else:
        with RemoteApi(to, api_key) as api:
            api.record([event])
    return event


def _target(text: str, *, here: bool) -> Asset:
    """Return the asset that a text names. The API of another environment knows the names there."""
    # No name looks like this, and nobody should wait for a ledger then.
    if not here or "://" in text:
        return Asset(text)
    with suppress(ApiUnreachable, ApiRefused, LedgerError):
        uri = resolve_name(text)
        return Asset(text) if uri is None else Asset(uri, name=text)
    return Asset(text)


def _event_id(id: UUID | str | None) -> UUID:  # noqa: A002
    if id is None:
        return uuid4()
    try:
        return UUID(str(id))
    except ValueError as error:
        raise InvalidEvent(f"the id {id!r} is not a UUID", rule="2.2", fix="Leave it out, or give a UUID") from error
