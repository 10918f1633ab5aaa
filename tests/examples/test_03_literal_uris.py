"""Example 3: a URI is compared literally, character by character, and never as a pattern."""

import pytest

from assetflow import Asset
from tests.examples.simulated import runs, updates


@pytest.mark.rule("1.8")
@pytest.mark.parametrize("pattern", [r"input_\d+.csv", "input_2022*.csv"])
def test_a_pattern_is_an_ordinary_uri(pattern: str) -> None:
    assert runs({"consumer": pattern}, updates("input_20220101.csv")) == {"consumer": []}
    assert runs({"consumer": pattern}, updates(pattern)) == {"consumer": [[pattern]]}


def test_case_matters_in_a_host() -> None:
    assert Asset("s3://example/asset") != Asset("s3://Example/asset")
    assert runs({"consumer": "s3://example/asset"}, updates("s3://Example/asset")) == {"consumer": []}
