"""`emit`: an update that no task makes (2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from uuid import UUID, uuid4

from assetflow.authoring.delivery import deliver
from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.origin import current_origin
from assetflow.authoring.remote import RemoteApi
from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.events import AssetEvent, Recording, check_extra
from assetflow.core.partitions import check_key
from assetflow.errors import InvalidEvent


def emit(
    asset: Asset | str,
    extra: Mapping[str, object] | None = None,
    *,
    partition_key: str | None = None,
    aliases: Iterable[AssetAlias | str] = (),
    id: UUID | str | None = None,  # noqa: A002 (the event's word for it)
    to: str | None = None,
    key: str = "",
) -> AssetEvent:
    """Record that an asset was updated, from anywhere: a script, a notebook, a service.

    It is recorded durably when this returns. In a task rather use `outlets=`: its updates count only if it completes.

    Parameters:
        asset: the asset, or its URI.
        extra: a JSON object.
        partition_key: the key of the partition that was updated.
        aliases: aliases, or their names, that the update comes through.
        id: the event's id; the same id twice is one event (2.2). Without it each call is an event.
        to: the address of assetflow's API in another environment, as in `https://flows.example.org`; the update is
            recorded there, and not here.
        key: the key of that API.

    Raises:
        InvalidAsset, InvalidEvent, InvalidPartition: the update breaks chapters 1 and 2.
        RecordingFailed: Prefect, or the other environment, could not take it; with an `id`, calling again is safe.
    """
    target = Asset(asset) if isinstance(asset, str) else to_outlet(asset)
    if not isinstance(target, Asset):
        raise InvalidEvent(f"{asset!r} is no asset", rule="2.6", fix='Write Asset("s3://bucket/orders")')
    names = {each.name if isinstance(each, AssetAlias) else AssetAlias(each).name for each in aliases}
    event = AssetEvent(
        id=_event_id(id),
        asset=target,
        occurred=datetime.now(UTC),
        origin=current_origin("api"),
        extra=check_extra(extra, where=f"extra of {target.label}"),
        partition_key=None if partition_key is None else check_key(partition_key),
        aliases=tuple(sorted(names)),
    )
    if to is None:
        deliver(Recording(event.id, (event,)))
    else:
        with RemoteApi(to, key) as api:
            api.record([event])
    return event


def _event_id(id: UUID | str | None) -> UUID:  # noqa: A002
    if id is None:
        return uuid4()
    try:
        return UUID(str(id))
    except ValueError as error:
        raise InvalidEvent(f"the id {id!r} is no UUID", rule="2.2", fix="Leave it out, or give a UUID") from error
