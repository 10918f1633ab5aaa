"""Events that people and programs make without a task: by the API, the CLI or `emit` (contract 2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast
from uuid import UUID

from assetflow.core.json_data import fit_json
from assetflow.core.partitions import check_key
from assetflow.core.values.assets import RULE, Asset, AssetAlias, check_data_version
from assetflow.core.values.events import (
    AssetEvent,
    Origin,
    Recording,
    canonical_json,
    check_extra,
    event_id,
    recording_id,
)
from assetflow.errors import AssetflowError, InvalidEvent


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
