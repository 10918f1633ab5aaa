"""`assetflow retry`: what an Eager flow tried is tried again (contract 8.7)."""

from __future__ import annotations

import pytest

from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import deploy
from tests.ledger.write.test_kept import CORE, RAW, Place, kept, only


@pytest.fixture
def failed(ledger: Ledger) -> Place:
    place = Place(ledger)
    place.deploy("core/lake", kept([RAW], [CORE]))
    place.end(only(place.update(RAW)), "failed")
    return place


def test_8_7_a_retry_asks_for_a_run(failed: Place, call: Call) -> None:
    told = call("retry", "core")
    assert told.out.splitlines()[0] == "core/lake: 1 run asked for"
    assert "no evaluator" in told.err.lower()
    assert len(failed.ledger.reader.decisions.find()) == 2

    again = call("retry", "core/lake", "--json").json
    assert again == {"consumer": "core/lake", "target_key": None, "decisions": [], "flow_runs": []}
    assert "`assetflow plan core/lake` says why" in call("retry", "core/lake").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), "no consumer is called 'nobody'"),
        (("core/lake", "--key", "a"), "core/lake is not partitioned"),
        (("core/lake", "--all-failed"), "tries all its targets again"),
        (("report/shop",), "report/shop has no failed run to run again"),
        (("report/shop", "--key", "a"), "report/shop, key a, has no failed run to run again"),
    ],
)
def test_8_7_a_retry_of_nothing_is_refused(failed: Place, call: Call, arguments: tuple[str, ...], words: str) -> None:
    deploy(failed.ledger, "report/shop", RAW)
    answer = call("retry", *arguments)
    assert (answer.code != 0, words in answer.err) == (True, True), answer.err
