"""`assets ls`, `events ls`, `decisions ls`, `queue ls`, `version`: for people and for programs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from assetflow import Eager
from assetflow.core.rules.ended_runs import run_name
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from assetflow.ledger.lease import Holder
from assetflow.ledger.read.freshness import HELD_UP
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, deploy, event_id, update
from tests.ledger import making
from tests.ledger.making import deploy_maker
from tests.ledger.read.test_ended_runs import ended


@pytest.mark.parametrize(
    ("ago", "alive", "held_up", "reason"),
    [
        (120, False, [], "no evaluator is running"),
        (120, True, [{"name": "clock"}], "Prefect does not answer"),
        (120, True, [], "the evaluator is still reading Prefect's logs"),
        (20, True, [{"name": "clock"}], None),
    ],
)
def test_8_13_a_state_that_is_not_known_now_has_a_code_of_its_own(
    ledger: Ledger, call: Call, ago: int, alive: bool, held_up: list[object], reason: str | None
) -> None:
    now = datetime.now(UTC)
    short = Asset(ORDERS.uri, freshness=FreshnessPolicy(timedelta(minutes=1)))
    deploy_maker(ledger, Eager(CUSTOMERS), [short], [CUSTOMERS], "core/lake", at=now - timedelta(hours=1))
    for asset in (CUSTOMERS, short):
        ledger.writer.events.record([making.update(asset)], now - timedelta(seconds=ago))
    ledger.writer.clock.run(now - timedelta(seconds=ago), now)
    assert (call("freshness").code, call("freshness", "--json").json[0]["state"]) == (0, "pass")
    read = now - timedelta(seconds=ago)
    ledger.writer.set_cursor("events", read.isoformat())
    ledger.writer.set_cursor(HELD_UP, held_up)
    if alive:
        ledger.writer.lease.acquire(Holder.this_process(uuid4()), seconds=3600)
    for command in (("freshness",), ("assets", "status")):
        answer = call(*command, "--json")
        found = next(each for each in answer.json if each["uri"] == ORDERS.uri)
        assert (answer.code, found["why"]) == ((0, None) if reason is None else (3, reason))
        assert found.get("freshness", found["state"]) == ("pass" if reason is None else "unknown")
    if reason is not None:
        said = " ".join(call("freshness", "--wide").out.split())
        assert f"unknown since {read:%Y-%m-%d %H:%M:%S} UTC: {reason}" in said
        assert reason in call("assets", "status", "--wide").out


def test_8_13_freshness_is_shown_and_fails_if_an_asset_does(ledger: Ledger, call: Call) -> None:
    assert "freshness=FreshnessPolicy(...)" in call("freshness").out
    fresh = Asset(ORDERS.uri, freshness=FreshnessPolicy(timedelta(minutes=30)))
    deploy(ledger, "report/shop", fresh)
    update(ledger, ORDERS, 1)
    ledger.writer.clock.run(NOON + timedelta(minutes=2), NOON + timedelta(minutes=2))
    assert "at most 30 min old" in call("freshness").out
    ledger.writer.clock.run(NOON + timedelta(hours=1), NOON + timedelta(hours=1))
    failed = call("freshness", "--json")
    assert failed.code == 1
    assert [(each["uri"], each["state"]) for each in failed.json] == [(ORDERS.uri, "fail")]


def test_events_are_listed_newest_first_by_key_asset_consumer_and_time(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    update(ledger, ORDERS, 1)
    update(ledger, CUSTOMERS, 2)
    update(ledger, HOURLY, 3, "2026-01-01T00:00:00")

    def listed(*options: str) -> list[int]:
        return [each["sequence"] for each in call("events", "ls", *options, "--json").json]

    assert listed() == [3, 2, 1]
    assert listed("--limit", "1") == listed("--key", "2026-01-01T00:00:00") == [3]
    assert listed("--asset", "customers") == listed("--asset", CUSTOMERS.uri) == [2]
    assert listed("--consumer", "report") == [1]
    assert listed("--since", "2026-01-01T12:02:00") == [3, 2]
    assert listed("--since", "2h") == []
    assert call("events", "ls", "--since", "2h").out.startswith("No such events. No evaluator is running")
    assert "Write 2026-11-20" in call("events", "ls", "--since", "yesterday").err


def test_runs_are_listed_whoever_started_them(ledger: Ledger, call: Call) -> None:
    report = deploy(ledger, "report/shop", ORDERS).deployment_id
    deploy(ledger, "copy/shop", CUSTOMERS)
    (first,) = update(ledger, ORDERS, 1)
    (second,) = update(ledger, CUSTOMERS, 2)
    ledger.writer.decisions.launched(second.id, event_id(8), NOON)
    by_hand = replace(ended(report, 2, "completed"), started_by="hand", error="")
    failed = replace(ended(report, 1), flow_run_id=event_id(7), decision=first.id, started_by="decision")
    ledger.writer.ended_runs.add([failed, by_hand], NOON)
    found = call("runs", "ls", "--json").json
    expected = [("report/shop", "Completed", "started by hand", None), ("report/shop", "Failed", "orders", True)]
    assert [(each["flow"], each["state"], each["because"], each["made_good"]) for each in found] == expected
    assert [each["error"] for each in call("runs", "ls", "--failed", "--flow", "report", "--json").json] == ["it broke"]
    assert call("runs", "ls", "--since", "today").out.startswith("No such runs.")
    plain = call("runs", "ls", "--failed", "--plain").out.splitlines()
    assert plain[0].split("\t")[:3] == ["state", "flow", "key"]
    assert plain[1].split("\t")[:4] == ["Failed, made good", "report/shop", "", "orders"]
    (running,) = call("runs", "ls", "--running", "--json").json
    assert (running["consumer"], running["flow_run_name"]) == ("copy/shop", run_name(second.id, None, [CUSTOMERS]))


def test_one_run_and_one_consumer_are_shown(ledger: Ledger, call: Call) -> None:
    report = deploy(ledger, "report/shop", ORDERS).deployment_id
    ledger.writer.ended_runs.add([replace(ended(report, 1), flow_run_id=event_id(7))], NOON)
    shown = call("runs", "show", str(event_id(7))).out
    assert "Failed: report/shop (brave-fox)" in shown
    assert "error: it broke" in shown
    assert "Nothing has made it good. `assetflow retry report/shop` lets it try again" in " ".join(shown.split())
    assert "no decision started the flow run" in call("runs", "show", str(event_id(9))).err
    assert call("runs", "show", str(event_id(7))[:8]).out == shown
    assert "neither the id of a run nor its first characters" in call("runs", "show", "nightly").err
    assert "no run has the id that begins with 99999999" in call("runs", "show", "99999999").err
    consumer = call("consumers", "show", "report").out
    assert "report/shop\nruns on orders\n" in consumer
    assert "it broke. `assetflow retry report/shop` lets it try again" in " ".join(consumer.split())


def test_every_command_accepts_the_first_eight_characters_of_an_id(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    (decision,) = update(ledger, CUSTOMERS, 2)
    update(ledger, ORDERS, 3)
    ledger.writer.decisions.launched(decision.id, run := event_id(7), NOON)
    event, made = str(event_id(1)), str(decision.id)
    assert event in call("events", "show", event[:8]).out
    assert event in call("explain", "--event", event[:13].upper()).out
    for beginning in (made[:8], str(run)[:8]):
        assert f"decision {made}" in call("decisions", "show", beginning).out
        assert f"decision {made}" in call("explain", "--run", beginning).out
    last = str(event_id(3))
    assert call("queue", "ls", "--event", last[:8], "--json").json[0]["event_id"] == last
    assert call("queue", "rm", "report", "--event", last[:8], "--why", "wrong").out.startswith("1 event removed")
