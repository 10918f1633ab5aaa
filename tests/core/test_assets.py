"""Assets, references and aliases as values (chapter 1)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from assetflow.core.assets import Asset, AssetAlias, AssetRef
from assetflow.core.conditions import AssetAll
from assetflow.errors import InvalidAsset


@pytest.mark.parametrize(
    "asset",
    [
        Asset("orders", "s3://b/a"),
        Asset("s3://b/a", name="orders"),
        Asset(name="orders", uri="s3://b/a/"),
        Asset(uri="S3://b/a#x", name="orders"),
    ],
)
def test_rule_1_2_ways_to_name_an_asset(asset: Asset) -> None:
    assert (asset.uri, asset.name) == ("s3://b/a", "orders")


@pytest.mark.parametrize(
    "asset", [Asset("s3://b/a/"), Asset(uri="s3://b/a/"), Asset(name="s3://b/a/", uri="s3://b/a/"), Asset(name="s3://b/a/")]
)  # fmt: skip
def test_rule_1_2_without_a_name_it_is_the_normalised_uri(asset: Asset) -> None:
    assert (asset.uri, asset.name) == ("s3://b/a", "s3://b/a")


def test_rule_1_1_identity_is_the_uri() -> None:
    one, other = Asset("s3://b/a", name="n", group="g", extra={"x": 1}), Asset("s3://b/a/")

    assert one == other
    assert len({one, other}) == 1
    assert one != Asset("s3://b/A")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Asset(),
        lambda: Asset("a", "b", name="c"),
        lambda: Asset(" "),
        lambda: Asset("self"),
        lambda: Asset("s3://b/a", name="context"),
        lambda: Asset("s3://b/a", name=" "),
        lambda: Asset("s3://b/a", extra=[1]),  # type: ignore[arg-type]
        lambda: Asset.ref(),  # type: ignore[call-overload]
        lambda: AssetRef(name="n", uri="s3://b/a"),
        lambda: AssetRef(name=" "),
        lambda: AssetRef(uri="s3://"),
        lambda: AssetAlias(" "),
    ],
)
def test_rules_1_2_to_1_7_what_is_refused_says_which_rule(make: Any) -> None:
    with pytest.raises(InvalidAsset) as caught:
        make()

    assert caught.value.rule


def test_rule_1_6_reference_normalises_its_uri() -> None:
    assert Asset.ref(uri="S3://b/a/") == Asset.ref(uri="s3://b/a")


def test_rule_1_7_aliases_are_case_sensitive() -> None:
    assert AssetAlias("x") != AssetAlias("X")
    assert AssetAlias("self").name == "self"


@pytest.mark.parametrize(
    "leaf", [Asset("s3://b/a", name="n", group="g", extra={"x": [1]}), Asset.ref(name="n"), AssetAlias("x"), AssetAll()]
)
def test_what_was_made_cannot_be_changed(leaf: Any) -> None:
    before = hash(leaf)
    for name in ("uri", "name", "extra", "objects", "anything"):
        with pytest.raises(AttributeError, match="cannot be changed after it was made"):
            setattr(leaf, name, "s3://other/one")
    assert leaf.tokens is not None
    assert hash(leaf) == before
    for copied in (pickle.loads(pickle.dumps(leaf)), copy.deepcopy(leaf)):
        assert copied == leaf
        assert repr(copied) == repr(leaf)
        with pytest.raises(AttributeError):
            copied.name = "x"


def test_an_asset_keeps_its_own_extra() -> None:
    extra: dict[str, Any] = {"owners": ["ann"]}
    asset = Asset("s3://b/a", extra=extra)
    extra["owners"].append("bob")
    assert asset.extra == {"owners": ["ann"]}
    assert pickle.loads(pickle.dumps(asset)).extra == {"owners": ["ann"]}
