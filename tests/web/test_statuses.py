"""The status of assets on the pages: the list, an asset's page, and the verdict on a consumer's (8.9, 8.16)."""

import pytest

from tests.ledger.making import A, B, C
from tests.web.conftest import Site


@pytest.mark.usefixtures("stale")
def test_the_pages_of_an_asset_its_source_and_its_reader_say_what_has_changed(site: Site) -> None:
    part = site.page("/asset/status", params={"asset": B.uri})
    assert "stale" in part.text
    assert f"{A.uri} changed: first → second, 0 s ago, not read yet." in part.text
    assert "make-c/x It waits for make-b/x" in " ".join(part.text.split())
    assert any(row.startswith("made") for row in part.rows)
    part = site.page("/asset/status", params={"asset": A.uri})
    assert "No flow makes this asset." in part.text
    assert [row.split()[0] for row in part.rows] == ["Read", "make-b/x", "Version", "second", "first"]
    text = site.page("/consumers/make-c/x").text
    assert f"It waits for make-b/x: {C.uri} was never made. Looked at next: when make-b/x ended." in text
    assert "Runs when what it was made from is out of date" in text
    assert "Queue" not in text
