"""Which consumers a list shows: the same words mean the same on the command line, in the API and on the pages."""

from datetime import timedelta

import pytest

from assetflow.core.values.timing import Deadline
from assetflow.ledger import Ledger
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations.lookup import list_by_id, list_in_order
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, update
from tests.web.conftest import Site

BOTH, HELD, PAUSED, WORKING = "both/shop", "held/shop", "paused/shop", "working/shop"
# What is asked for: the words of the API, the option of the command line, the choice on the page, and who is shown.
CASES = [
    ({}, (), "", {BOTH, HELD, PAUSED, WORKING}),
    ({"paused": True}, ("--paused",), "paused", {BOTH, PAUSED}),
    ({"paused": False}, ("--no-paused",), None, {HELD, WORKING}),
    ({"held": True}, ("--held",), "held", {BOTH, HELD}),
    ({"held": False}, ("--no-held",), None, {PAUSED, WORKING}),
    ({"active": True}, ("--active",), "active", {WORKING}),
    ({"active": False}, ("--no-active",), "inactive", {BOTH, HELD, PAUSED}),
    ({"paused": True, "held": False}, ("--paused", "--no-held"), None, {PAUSED}),
    ({"paused": False, "active": False}, ("--no-paused", "--no-active"), None, {HELD}),
]


@pytest.fixture
def switched(ledger: Ledger) -> Ledger:
    """A consumer for each state of the two switches."""
    for name in (BOTH, HELD, PAUSED, WORKING):
        number = deploy(ledger, name, ORDERS).id
        ledger.writer.consumers.switch(number, paused=name in (BOTH, PAUSED), held=name in (BOTH, HELD), now=NOON)
    return ledger


@pytest.mark.rule("3.4")
@pytest.mark.parametrize(("words", "options", "choice", "shown"), CASES)
def test_command_line_api_and_page_agree(
    switched: Ledger,
    call: Call,
    site: Site,
    words: dict[str, bool],
    options: tuple[str, ...],
    choice: str | None,
    shown: set[str],
) -> None:
    params = {name: str(value).lower() for name, value in words.items()}
    found = site.get("/api/v1/consumers", params=params).json()["items"]
    assert {each["name"] for each in found} == shown
    assert all(each[name] is value for each in found for name, value in words.items()), "the fields mean the same"
    assert call("consumers", "ls", *options, "--json").json == found
    if choice is not None:
        rows = site.page(f"/consumers?show={choice}").rows[1:]
        assert {row.split()[0] for row in rows} == shown
    wanted = ConsumerFilter(paused=words.get("paused"), held=words.get("held"), active=words.get("active"))
    by_name, total = list_in_order(switched.reader, wanted, "name", NOON, offset=0, limit=2)
    assert (total, [each.name for each in by_name]) == (len(shown), sorted(shown)[:2])
    assert [each.name for each in list_by_id(switched.reader, wanted, NOON)] == [each["name"] for each in found]


@pytest.mark.rule("9.8")
def test_missed_deadlines_are_listed_newest_first(ledger: Ledger, call: Call, site: Site) -> None:
    assert "No deadline was missed." in call("deadlines", "ls").out
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS, deadline=Deadline(timedelta(hours=1), then="run"))
    deploy(ledger, "audit/shop", ORDERS & CUSTOMERS, deadline=Deadline(timedelta(hours=2), then="skip"))
    update(ledger, ORDERS, 1)
    ledger.writer.clock.run(NOON + timedelta(hours=4), NOON + timedelta(hours=4))
    told = call("deadlines", "ls", "--json").json
    expected = [("audit/shop", "2026-01-01T14:01:00Z", "skip"), ("report/shop", "2026-01-01T13:01:00Z", "run")]
    assert [(each["consumer"], each["due"], each["then"]) for each in told] == expected
    assert (told[0]["queued"], told[0]["missing"], told[0]["target_key"]) == (1, [CUSTOMERS.uri], None)
    assert site.get("/api/v1/deadlines/missed").json()["items"] == told
    assert call("deadlines", "ls", "--consumer", "report", "--json").json == told[1:]
    assert site.get("/api/v1/deadlines/missed?consumer=report/shop").json()["items"] == told[1:]
    assert [each["by_deadline"] for each in site.get("/api/v1/decisions").json()["items"]] == [True]
    shown = call("deadlines", "ls", "--limit", "1").out
    assert "audit/shop" in shown
    assert shown.split()[-1] == "customers"
