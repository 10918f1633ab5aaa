"""Assets, references and aliases as values (chapter 1)."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AssetAll
from assetflow.errors import InvalidAsset


@pytest.mark.parametrize(
    ("asset", "name"),
    [
        (Asset("orders", "s3://b/a"), "orders"),
        (Asset("s3://b/a", name="orders"), "orders"),
        (Asset(name="orders", uri="s3://b/a/"), "orders"),
        (Asset(uri="S3://b/a#x", name="orders"), "orders"),
        # Without a name, the name is the normalised URI.
        (Asset("s3://b/a/"), "s3://b/a"),
        (Asset(uri="s3://b/a/"), "s3://b/a"),
        (Asset(name="s3://b/a/"), "s3://b/a"),
        (Asset(name="s3://b/a/", uri="s3://b/a/"), "s3://b/a"),
    ],
)
def test_rule_1_2_ways_to_name_an_asset(asset: Asset, name: str) -> None:
    assert (asset.uri, asset.name) == ("s3://b/a", name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Asset(),
        lambda: Asset(" "),
        lambda: Asset("self"),
        lambda: Asset("s3://b/a", name="context"),
        lambda: Asset("s3://b/a", name=" "),
        lambda: Asset("s3://b/a", extra=[1]),  # type: ignore[arg-type]
        lambda: Asset.ref(),  # type: ignore[call-overload]
        lambda: AssetRef(name="n", uri="s3://b/a"),
        lambda: AssetRef(uri="s3://"),
        lambda: AssetAlias(" "),
    ],
)
def test_rules_1_2_to_1_7_what_is_refused_says_which_rule(make: Any) -> None:
    with pytest.raises(InvalidAsset) as caught:
        make()
    assert caught.value.rule


def test_rule_1_7_aliases_are_case_sensitive() -> None:
    assert AssetAlias("x") != AssetAlias("X")
    assert AssetAlias("self").name == "self"


CHANGES: list[Callable[[Any], object]] = [
    lambda extra: extra.__setitem__("rows", float("nan")),
    lambda extra: extra.__delitem__("rows"),
    lambda extra: extra.__ior__({"rows": 2}),
    lambda extra: extra.update(rows=object()),
    lambda extra: extra.setdefault("more", 1),
    lambda extra: extra.pop("rows"),
    lambda extra: extra.popitem(),
    lambda extra: extra.clear(),
    lambda extra: extra["owner"].update(name="x"),
    lambda extra: extra["files"].append(object()),
    lambda extra: extra["files"].extend([1]),
    lambda extra: extra["files"].insert(0, 1),
    lambda extra: extra["files"].remove("a"),
    lambda extra: extra["files"].reverse(),
    lambda extra: extra["files"].sort(),
    lambda extra: extra["files"].__setitem__(0, 1),
    lambda extra: extra["files"].__iadd__([1]),
    lambda extra: extra["files"].__imul__(2),
    lambda extra: extra["files"][1].clear(),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", [Asset, Asset.known])
def test_the_extra_of_an_asset_cannot_be_changed(make: Any, change: Callable[[Any], object]) -> None:
    extra = {"rows": 1, "owner": {"name": "ann"}, "files": ["a", {"b": [None]}]}
    asset = make("s3://b/a", name="n", extra=extra)
    copies = [asset, copy.deepcopy(asset), copy.copy(asset), pickle.loads(pickle.dumps(asset))]
    for each in copies:
        with pytest.raises(TypeError, match="cannot be changed after it was made"):
            change(each.extra)
        assert each.extra == extra
        assert json.loads(json.dumps(each.extra)) == extra
    assert {**asset.extra, "rows": 2}["rows"] == 2


def test_an_asset_keeps_its_own_extra() -> None:
    extra: dict[str, Any] = {"owners": ["ann"]}
    asset = Asset("s3://b/a", extra=extra)
    extra["owners"].append("bob")
    assert asset.extra == {"owners": ["ann"]}
    assert pickle.loads(pickle.dumps(asset)).extra == {"owners": ["ann"]}


def test_rule_1_1_identity_is_the_uri() -> None:
    one, other = Asset("s3://b/a", name="n", group="g", extra={"x": 1}), Asset("s3://b/a/")
    assert one == other
    assert len({one, other}) == 1
    assert one != Asset("s3://b/A")


@pytest.mark.parametrize(
    "leaf", [Asset("s3://b/a", name="n", group="g", extra={"x": [1]}), Asset.ref(name="n"), AssetAlias("x"), AssetAll()]
)
def test_what_was_made_cannot_be_changed(leaf: Any) -> None:
    before = hash(leaf)
    for name in ("uri", "name", "extra", "objects", "anything"):
        with pytest.raises(AttributeError, match="cannot be changed after it was made"):
            setattr(leaf, name, "s3://other/one")
        with pytest.raises(AttributeError, match="cannot be changed after it was made"):
            delattr(leaf, name)
    assert leaf.tokens is not None
    assert hash(leaf) == before
    for copied in (pickle.loads(pickle.dumps(leaf)), copy.deepcopy(leaf)):
        assert copied == leaf
        assert repr(copied) == repr(leaf)
        with pytest.raises(AttributeError):
            copied.name = "x"
