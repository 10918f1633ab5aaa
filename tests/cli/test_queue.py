"""`queue rm`, `queue replay`, `decisions give-up` and `retry`: an operator's work."""

import pytest

from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.ledger.write.test_kept import RAW, Place


def queued(call: Call, consumer: str) -> list[str]:
    return [each["event_id"] for each in call("queue", "ls", consumer, "--json").json]


@pytest.mark.rule("3.7")
def test_removed_events_have_a_receipt_that_says_who_and_why(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    deploy(ledger, "other/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    removed = call("queue", "rm", "report", "--why", "a test update", "--by", "ann", "--json").json
    assert removed == {"consumer": "report/shop", "target_key": None, "removed": 1}
    assert (queued(call, "report"), queued(call, "other")) == ([], [str(event_id(1))])
    receipt = call("events", "show", str(event_id(1)), "--json").json["receipts"][0]
    assert (receipt["status"], receipt["by"], receipt["why"]) == ("removed", "ann", "a test update")


def test_rule_3_7_a_removal_that_matches_nothing_is_refused(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "daily/shop", ROLLED_UP)
    update(ledger, HOURLY, 1, "2026-01-01T00:00:00")
    hour = call("queue", "rm", "daily", "--key", "2026-01-01T00:00:00", "--why", "x")
    assert hour.code == 2
    assert "nothing is removed: no queued event matches" in hour.err
    assert "Keys with queued events: 2026-01-01" in hour.err
    titles, row = call("queue", "ls", "daily").out.splitlines()
    assert row[titles.index(" key") :].split()[:2] == ["2026-01-01", "2026-01-01T00:00:00"]


def test_undeliverable_decisions_are_replayed_by_consumer_asset_and_event(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    deploy(ledger, "other/shop", ORDERS | CUSTOMERS)
    decisions = [*update(ledger, ORDERS, 1), *update(ledger, ORDERS, 2), *update(ledger, CUSTOMERS, 3)]
    for each in decisions:
        ledger.writer.decisions.undeliverable(each.id, "gone", NOON)

    def replayed(*words: str) -> int:
        return len(call("queue", "replay", *words, "--json").json)

    assert replayed("--event", str(event_id(1)), "--consumer", "report") == 1
    assert replayed("--event", str(event_id(1))) == 1
    assert replayed("--asset", "customers") == 1
    assert replayed("--consumer", "report") == 1
    assert replayed("--asset", "orders") == 1
    assert len(call("decisions", "ls", "--waiting", "--json").json) == len(decisions) == 5
    assert "No such decision" in call("queue", "replay", "--asset", "orders").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rm", "--why", "x"), "--asset or --event"),
        (("rm", "--asset", "orders", "--key", "a", "--why", "x"), "Name a consumer"),
        (("rm", "--event", "00000000-0000-0000-0000-00000000dead", "--why", "x"), "events ls"),
        (("ls", "--asset", "ordres"), "orders"),
        (("replay",), "--consumer"),
        (("replay", "00000000-0000-0000-0000-00000000dead", "--asset", "orders"), "cannot be given together"),
        (("replay", "--consumer", "nobody"), "nobody"),
    ],
)
def test_calls_that_name_nothing_say_what_to_do(ledger: Ledger, call: Call, words: tuple[str, ...], told: str) -> None:
    deploy(ledger, "report/shop", ORDERS)
    update(ledger, ORDERS, 1)
    refused = call("queue", *words)
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err


@pytest.mark.failure(
    "Prefect",
    "a decision waits forever",
    "`assetflow decisions give-up ID --why …`, and younger ones get their runs within half a minute",
)
@pytest.mark.rule("4.6")
def test_a_waiting_decision_is_given_up_by_somebody_for_a_reason(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 1)
    assert call("decisions", "give-up", str(decision.id)).code == 2
    assert call("decisions", "give-up", str(decision.id), "--why", " ").code == 2
    given_up = call("decisions", "give-up", str(decision.id), "--why", "never sent", "--by", "ann", "--json").json
    assert given_up == {"id": str(decision.id), "status": "undeliverable"}
    run = call("decisions", "show", str(decision.id), "--json").json["run"]
    assert (run["status"], run["error"]) == ("undeliverable", "given up by ann: never sent")
    again = call("decisions", "give-up", str(decision.id), "--why", "x")
    assert again.code == 2
    assert "does not wait for its run" in again.err
    assert call("queue", "replay", str(decision.id)).code == 0


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
