"""`observe`: into the ledger that is at hand, else through Prefect (contract 8.2)."""

from __future__ import annotations

import pytest

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import ORDERS, deploy


def test_rule_8_2_only_another_version_is_an_update(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    told = [call("observe", ORDERS.uri, version, "--json").json for version in ("1", "1", "2")]

    assert [each["event"] is None for each in told] == [False, True, False]
    assert [each.data_version for each in ledger.reader.events.find()] == ["1", "2"]
    assert len(ledger.reader.decisions.find()) == 2


def test_rule_1_2_a_name_means_the_asset_that_has_it(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", Asset(ORDERS.uri, name="orders"))

    assert call("observe", "orders", "1", "--json").json["uri"] == ORDERS.uri


def test_what_happened_is_said_in_words(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    first, again = (call("observe", ORDERS.uri, "1", "--key", "k").out for _ in range(2))

    assert first.startswith("orders, partition k: event ")
    assert "that is the newest version; nothing changes" in again


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((" ",), "data_version is ' '"),
        (("v" * 251,), "VERSION"),
        (("1", "--key", " "), "--key"),
    ],
)
def test_a_wrong_observation_is_refused(ledger: Ledger, call: Call, arguments: tuple[str, ...], words: str) -> None:
    answer = call("observe", ORDERS.uri, *arguments)

    assert (answer.code, words in answer.err) == (2, True)
    assert ledger.reader.events.find() == []
