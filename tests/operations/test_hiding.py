"""Assets that an operator hides: gone from every list until an update or a declaration, and nothing is deleted."""

from urllib.parse import quote

import pytest

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, ORDERS, deploy, update
from tests.web.conftest import Site
from tests.web.html import read

LEFT = Asset("s3://lake/left", name="left")


@pytest.fixture
def left(ledger: Ledger) -> Ledger:
    """A ledger with an asset that nobody declares; a flow runs on another."""
    deploy(ledger, "report/shop", ORDERS)
    update(ledger, LEFT, 1, aliases=("old",))
    return ledger


def shown(call: Call, site: Site) -> tuple[bool, ...]:
    """Whether each way of looking shows the asset: command, API, Airflow's API, page, search, graph."""
    return (
        LEFT.uri in [each["uri"] for each in call("assets", "ls", "--json").json],
        LEFT.uri in site.get("/api/v1/assets").text,
        LEFT.uri in site.get("/api/v2/assets").text,
        LEFT.uri in site.get("/assets").text,
        LEFT.uri in site.get("/search", params={"q": "left"}).text,
        LEFT.uri in site.get("/api/v1/graph").text,
    )


def test_what_is_hidden_is_left_out_until_it_is_shown_again(left: Ledger, call: Call, site: Site) -> None:
    assert shown(call, site) == (True,) * 6
    assert "is hidden until its next update" in call("assets", "hide", "left").out
    assert shown(call, site) == (False,) * 6
    assert [each["uri"] for each in call("assets", "ls", "--hidden", "--json").json] == [LEFT.uri]
    assert [each["uri"] for each in site.get("/api/v1/assets?hidden=true").json()["items"]] == [LEFT.uri]
    assert LEFT.uri in site.get("/assets?show=hidden").text
    assert site.get("/api/v1/asset?asset=left").json()["hidden"], "it is found by its name"
    assert left.reader.events.count() == 1
    call("assets", "unhide", "left")
    assert shown(call, site) == (True,) * 6


@pytest.mark.parametrize(
    ("asset", "words"),
    [(ORDERS, f"{ORDERS.uri} cannot be hidden: it starts report/shop"), (CUSTOMERS, "it is made by load/shop")],
)
def test_what_a_flow_names_is_not_hidden(left: Ledger, call: Call, site: Site, asset: Asset, words: str) -> None:
    deploy(left, "load/shop", None, produces=(CUSTOMERS,))
    refused = site.post(f"/api/v1/assets/{quote(asset.uri, safe='')}/hide", json={})
    assert refused.status_code == 409
    assert words in refused.json()["detail"]
    told = call("assets", "hide", asset.uri)
    assert (told.code, words.partition(": ")[2] in " ".join(told.err.split())) == (2, True)
    assert left.reader.assets.hidden() == set()
    assert "/asset/hide" not in site.get("/asset", params={"asset": asset.uri}).text


def test_the_page_hides_and_shows_and_tells_what_is_refused(left: Ledger, site: Site) -> None:
    page = f"/asset?asset={quote(LEFT.uri, safe='')}"
    site.submit("/asset/hide", page, "/asset/hide")
    assert left.reader.assets.hidden() == {LEFT.uri}
    assert "This asset is hidden" in site.get(page).text
    site.submit("/asset/unhide", page, "/asset/unhide")
    assert left.reader.assets.hidden() == set()
    hidden = site.page(page).form("/asset/hide")
    deploy(left, "late/shop", LEFT)
    refused = site.post("/asset/hide", data=hidden)
    assert refused.status_code == 409
    told = read(refused.text)
    assert f"Nothing was changed. The asset {LEFT.uri} cannot be hidden" in told.text
    assert "First seen" in told.text
    # A reload asks for the address of the form.
    assert site.get("/asset/hide", params={"asset": LEFT.uri}).headers["location"] == page
    assert site.get("/asset/unhide").headers["location"] == "/assets"
