"""`emit` and `observe`: into the ledger that is at hand, else through Prefect."""

from pathlib import Path
from uuid import UUID

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from assetflow.prefect_io.names import LEDGER_VARIABLE
from assetflow.prefect_io.rest import TAKEN_OVER
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, ORDERS, deploy
from tests.environment.prefect_server import PrefectServer

ID = UUID(int=5)
NAMED = Asset(ORDERS.uri, name="orders")


@pytest.mark.rule("2.6")
def test_an_update_is_recorded_and_decided_when_the_command_answers(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    deploy(ledger, "both/shop", ORDERS & CUSTOMERS)
    options = ("--extra", '{"rows": 3}', "--alias", "late", "--id", str(ID), "--name", "o")
    emitted = call("emit", "S3://lake/orders/", *options, "--json").json
    (decision,) = ledger.reader.decisions.find()
    assert (emitted["event_id"], emitted["uri"], emitted["queued"]) == (str(ID), ORDERS.uri, ["both/shop"])
    assert [each["id"] for each in emitted["decisions"]] == [str(decision.id)]
    event = ledger.reader.events.get(ID)
    assert event is not None
    assert (event.extra, event.aliases, event.origin.kind, event.asset.name) == ({"rows": 3}, ("late",), "cli", "o")
    assert not call("emit", ORDERS.uri, "--id", str(ID), "--json").json["new"]


@pytest.mark.usefixtures("home")
def test_what_prefect_may_not_have_taken_can_be_said_again(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.1")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        answer = call("emit", ORDERS.uri, "--id", str(ID))
    assert (answer.code, answer.out) == (2, "")
    assert f"the update of {ORDERS.uri} may not be recorded: " in answer.err
    assert "does not answer" in answer.err
    assert f"with --id {ID}" in answer.err
    assert "task" not in answer.err


@pytest.mark.rule("2.6")
@pytest.mark.prefect
@pytest.mark.parametrize("evaluator_saw_it", [True, False])
def test_beside_a_ledger_that_was_taken_over_an_update_goes_through_prefect(
    prefect_here: PrefectServer, call: Call, home: Path, evaluator_saw_it: bool
) -> None:
    """It would be recorded in a ledger that nobody evaluates any more."""
    other = str(UUID(int=9))
    with Ledger.open(home / "ledger.db") as ledger:
        ledger.writer.set_prefect_api_url(prefect_here.api_url)
        if evaluator_saw_it:
            ledger.writer.set_cursor(TAKEN_OVER, other)
    with prefect_here.http() as http:
        http.delete(f"/variables/name/{LEDGER_VARIABLE}")
        if not evaluator_saw_it:
            http.post("/variables/", json={"name": LEDGER_VARIABLE, "value": other}).raise_for_status()
        try:
            answer = call("emit", ORDERS.uri, "--json")
        finally:
            http.delete(f"/variables/name/{LEDGER_VARIABLE}")
    assert answer.json["via"] == "prefect"
    assert f"ledger {other} has taken over" in answer.err


@pytest.mark.prefect
@pytest.mark.parametrize("other_ledger", [False, True])
def test_without_the_right_ledger_prefect_keeps_it(
    prefect_here: PrefectServer, call: Call, home: Path, other_ledger: bool
) -> None:
    if other_ledger:
        with Ledger.open(home / "ledger.db") as ledger:
            ledger.writer.set_prefect_api_url("http://127.0.0.1:1/api")
    number = UUID(int=77 + other_ledger)
    assert call("emit", ORDERS.uri, "--id", str(number), "--json").json["via"] == "prefect"
    body = {"artifacts": {"type": {"any_": ["assetflow-update"]}}, "sort": "CREATED_DESC"}
    with prefect_here.http() as http:
        found = http.post("/artifacts/filter", json=body).json()
    assert any(str(number) in str(artifact["data"]) for artifact in found)
    again = call("emit", ORDERS.uri, "--id", str(number)).out
    assert f"which refuse it and why: `assetflow explain --event {number}` beside the evaluator" in again


def test_rule_8_2_what_an_observation_led_to_is_said_in_words(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", NAMED)
    first, again = (call("observe", "orders", "1", "--key", "k").out for _ in range(2))
    assert first.startswith("orders, partition k: event ")
    assert "that is the newest version; nothing changes" in again
