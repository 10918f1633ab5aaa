"""Conditions as values: how they are written, read and evaluated."""

from typing import Any

import pytest

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import AssetAll, AssetAny, Gate, Token, from_postfix, to_condition
from assetflow.errors import InvalidSchedule
from tests.core.world import A, B, C


def test_operators_build_gates() -> None:
    assert AssetAll(A, B, C) == A & B & C
    assert AssetAny(A, B, C) == A | B | C
    assert AssetAny(A, AssetAll(B, C)) == A | B & C
    assert AssetAll(AssetAll(A, B), C) == [A, B] & C or AssetAll(A, B, C) == [A, B] & C  # type: ignore[operator]


def test_a_list_is_and() -> None:
    assert to_condition([A, [B, C]]) == AssetAll(A, AssetAll(B, C))


@pytest.mark.parametrize("value", ["s3://b/a", 5, None, {A}, object()])
def test_what_is_no_condition_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSchedule, match="Asset"):
        to_condition(value)


def test_python_words_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="orders & customers"):
        bool(A and B)


@pytest.mark.parametrize("nodes", [[], [A, B], [A, Gate("all", 2)], [A, Gate("any", -1)]])
def test_damaged_postfix_is_refused(nodes: list[object]) -> None:
    with pytest.raises(InvalidSchedule):
        from_postfix(nodes)  # type: ignore[arg-type]


def test_needed_uris_are_those_that_no_or_stands_above() -> None:
    assert (A & [B, A | C] & AssetAlias("x")).needed_uris == {A.uri, B.uri}
    assert (A | B).needed_uris == frozenset()
    assert A.needed_uris == {A.uri}


def test_tokens_are_the_index_entries() -> None:
    condition = A & Asset.ref(name="n") & Asset.ref(uri="s3://b/b") & AssetAlias("x")
    assert condition.tokens == {Token("uri", A.uri), Token("name", "n"), Token("uri", B.uri), Token("alias", "x")}


def test_words() -> None:
    assert (A | (Asset(B.uri, name="b") & AssetAlias("x"))).describe() == "s3://b/a OR (b AND alias x)"
    assert AssetAll().describe() == "always"
