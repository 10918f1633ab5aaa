"""`emit`: record an update that does not come from a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID, uuid4

from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.origin import current_origin
from assetflow.authoring.past_events.sources import resolve_name
from assetflow.authoring.recording import deliver
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import AssetLike
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.posted_events import event_by_hand
from assetflow.errors import ApiRefused, ApiUnreachable, InvalidCall, InvalidEvent, LedgerError, places


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
    target = _called(asset, here=to is None) if isinstance(asset, str) else to_outlet(asset)
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


def _called(text: str, *, here: bool) -> Asset:
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
