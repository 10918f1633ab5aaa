"""Example 4: which URIs are refused, and which stay as they are."""

import pytest

from assetflow import Asset
from assetflow.errors import InvalidAsset


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("uri", "what_to_do"),
    [
        ("s3://", "'s3://' breaks the rule of its scheme. Name the bucket, as in s3://bucket/key"),
        ("airflow://example_asset", "Choose another scheme"),
        ("èxample_datašet", "Percent-encode it"),
    ],
)
def test_refused_with_what_to_do(uri: str, what_to_do: str) -> None:
    with pytest.raises(InvalidAsset, match=what_to_do):
        Asset(uri)


@pytest.mark.parametrize("uri", ["x-my-thing://foobarbaz", "//example/asset", "example_asset"])
def test_unchanged(uri: str) -> None:
    assert Asset(uri).uri == uri
