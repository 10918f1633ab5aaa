"""Events that people and programs make without a task: by the API, the CLI or `emit` (contract 2.6)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, check_extra
from assetflow.core.values.versions import check_data_version
from assetflow.errors import AssetflowError


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
