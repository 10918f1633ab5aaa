"""`status`: whether assets are up to date, read from the ledger on this machine or from assetflow's API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast, overload
from urllib.parse import quote

from assetflow.authoring.metadata import to_outlet
from assetflow.authoring.remote import RemoteApi
from assetflow.core.explain.status import Status
from assetflow.core.shapes import from_json
from assetflow.core.values.assets import Asset, AssetRef
from assetflow.core.values.conditions import AssetLike
from assetflow.errors import InvalidCall, UnknownAsset
from assetflow.settings import get_settings


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
    if asset is None:
        if partition_key is not None:
            raise InvalidCall("a partition key needs an asset", fix="Write status(asset, partition_key)")
        return _remote_list() if get_settings().uses_api else _local_list()
    text = _called(asset)
    return _remote(text, partition_key) if get_settings().uses_api else _local(text, partition_key)


def _called(asset: Asset | AssetLike | str) -> str:
    target = asset if isinstance(asset, str) else to_outlet(asset)
    if isinstance(target, str):
        return target
    if isinstance(target, Asset | AssetRef):
        return target.uri or cast(AssetRef, target).name or ""
    raise InvalidCall(f"{asset!r} is not an asset", fix="Give an asset, its name or its URI")


def _local(text: str, key: str | None) -> Status:
    from assetflow.ledger.read.reader import Reader

    with Reader.open() as reader:
        uri = reader.assets.uris_called([text]).get(text) or Asset(text).uri
        if not reader.assets.numbers([uri]):
            raise _unknown(text)
        return reader.freshness.status(uri, key, datetime.now(UTC))


def _local_list() -> list[Status]:
    from assetflow.ledger.read.reader import Reader

    with Reader.open() as reader:
        return reader.freshness.statuses(None, datetime.now(UTC))


def _remote(text: str, key: str | None) -> Status:
    with RemoteApi.of_settings() as api:
        answer = api.get(f"/api/v1/assets/{quote(text, safe='')}/status", {} if key is None else {"partition_key": key})
    if answer is None:
        raise _unknown(text)
    return from_json(Status, answer)


def _remote_list() -> list[Status]:
    with RemoteApi.of_settings() as api:
        return [from_json(Status, each) for each in api.items("/api/v1/statuses")]


def _unknown(text: str) -> UnknownAsset:
    return UnknownAsset(f"no asset is called {text!r}", fix="`assetflow assets ls` lists the assets")
