"""`observe` and `emit`: a flow whose function returns versions (contract 8.2), and calls that cannot mean anything."""

from datetime import timedelta
from typing import Any

import pytest
import respx

from assetflow import Asset, AssetAlias, emit, observe
from assetflow.core.values.events import read_versions
from assetflow.errors import InvalidCall, InvalidEvent, InvalidFlow


@pytest.mark.parametrize("source", ["s3://lake/raw", AssetAlias("x"), Asset.ref(name="raw")])
def test_what_is_no_asset_cannot_be_observed(source: Any) -> None:
    with pytest.raises(InvalidFlow, match="cannot be observed"):
        observe(source, every=timedelta(minutes=5))


@pytest.mark.parametrize(
    ("found", "partitions"),
    [
        (None, False), ("", False), (5, False), ({"k": "1"}, False), ("v" * 251, False),
        ("1", True), (None, True), ({"k": 1}, True), ({"": "1"}, True), ({None: "1"}, True),
    ],
)  # fmt: skip
def test_rule_8_2_what_is_not_a_version_is_refused(found: object, partitions: bool) -> None:
    with pytest.raises(InvalidEvent) as caught:
        read_versions(found, partitions=partitions, where="observation of s3://lake/raw")
    assert caught.value.fix


NO_ADDRESS = r"emit\(api_key=\.\.\.\) needs to=.*Write to="


@respx.mock
def test_an_api_key_without_an_address_is_refused() -> None:
    with pytest.raises(InvalidCall, match=NO_ADDRESS):
        emit("s3://shop/orders", api_key="secret")
