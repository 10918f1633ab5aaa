"""The signs of states: each has a drawing and a colour, in lists as in the graph."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from assetflow.core.values.states import Sign, sign_of
from assetflow.ledger import Ledger
from assetflow.web.pages import FOLDER
from tests.cli.shop import ORDERS, deploy, update
from tests.web.conftest import Site

NAMES = [name for name in get_args(Sign) if name]


@pytest.mark.parametrize("name", NAMES)
def test_each_sign_has_a_drawing_and_a_colour(name: str) -> None:
    styles = (FOLDER / "css/signs.css").read_text()
    assert f"--sign-{name}: url(" in styles
    assert f".sign-{name} {{ --sign: var(--sign-{name}); }}" in styles
    assert re.search(rf"\.sign\.sign-{name}\b[^{{]*{{ color:", styles)
    # The graph colours the same drawing.
    tints = (FOLDER / "js/graph-look.js").read_text().partition("const TINTS = {")[2].partition("}")[0]
    assert f"{name}: " in tints


def test_no_two_signs_look_alike() -> None:
    drawings = re.findall(r"--sign-\w+: url\(.*?(<path.*)\)", (FOLDER / "css/signs.css").read_text())
    assert len(set(drawings)) == len(drawings) >= len(NAMES)


@pytest.mark.parametrize(
    ("state", "sign"),
    [
        ("Completed", "good"),
        ("crashed", "bad"),
        ("Late", "wait"),
        ("paused", "pause"),
        ("stale", "stale"),
        ("new", ""),
        ("failed on this data", "bad"),
    ],
)
def test_a_state_has_a_sign(state: str, sign: str) -> None:
    assert sign_of(state) == sign


def test_badges_have_signs(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    update(ledger, ORDERS, 0)
    text = site.get("/activity?show=all").text
    assert 'class="badge badge-good sign-good">' in text
    assert 'class="badge badge-plain sign-plain">update' in text
