"""What an observation of a source says: a version, or one for each partition key (contract 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import cast
from uuid import UUID

from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_id, recording_id
from assetflow.core.values.versions import RULE, check_data_version
from assetflow.errors import InvalidEvent

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
