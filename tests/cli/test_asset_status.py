"""`assets status`, `plan` and `explain --asset`: for people and for programs (8.9, 8.16)."""

from __future__ import annotations

import pytest

from assetflow import Eager
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.ledger.making import NOW, A, B, C, deploy_maker, update


@pytest.fixture
def made(ledger: Ledger) -> Ledger:
    """B is made from A, and C from B; A has changed since B was made, and C is missing."""
    deploy_maker(ledger, Eager(A), [B], [A], "make-b/x", code_version="1")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    for asset, version in ((A, "first"), (B, "made"), (A, "second")):
        ledger.writer.events.record([update(asset, data_version=version)], NOW)
    return ledger


@pytest.mark.usefixtures("made")
def test_every_asset_that_an_eager_flow_needs_is_listed(call: Call) -> None:
    assert [each["state"] for each in call("assets", "status", "--json").json] == ["source", "stale", "missing"]
    _, raw, fact, board = call("assets", "status").out.splitlines()
    assert raw.split()[-1] == "source"
    assert "make-b/x" in fact
    assert f"{A.uri} changed: first → second" in fact
    assert "it was never made" in board


@pytest.mark.usefixtures("made")
def test_only_what_is_not_up_to_date(call: Call) -> None:
    assert [each["uri"] for each in call("assets", "status", "--stale", "--json").json] == [B.uri, C.uri]


@pytest.mark.usefixtures("made")
def test_one_asset_with_its_causes(call: Call) -> None:
    answer = call("assets", "status", B.uri)

    assert answer.out.splitlines()[:2] == [f"{B.uri}  ● stale", "made by make-b/x"]
    assert call("assets", "status", B.uri, "--json").json["causes"][0]["now"] == "second"


@pytest.mark.usefixtures("ledger")
def test_a_ledger_without_eager_flows_says_so(call: Call) -> None:
    assert call("assets", "status").out.startswith("No flow keeps assets up to date")
    assert call("plan").out.startswith("No flow keeps assets up to date")


@pytest.mark.usefixtures("ledger")
def test_a_key_needs_an_asset(call: Call) -> None:
    assert call("assets", "status", "--key", "2026-01-01").code == 2
    assert call("explain", "--key", "2026-01-01").code == 2


@pytest.mark.usefixtures("made")
def test_the_plan_says_what_runs_and_what_waits(call: Call) -> None:
    first, second = call("plan", "--json").json

    assert [each["targets"][0]["verdict"] for each in (first, second)] == ["in_progress", "waits"]
    assert second["targets"][0]["words"] == f"It waits for make-b/x: {C.uri} was never made"
    assert "when make-b/x ended" in call("plan", "make-c").out


def test_the_plan_of_a_later_time(ledger: Ledger, call: Call) -> None:
    deploy_maker(ledger, Eager(retries=1), [B], [A], "make-b/x")
    ((_, (decision,)),) = ledger.writer.events.record([update(A)], NOW)
    ledger.writer.decisions.ended("Failed", NOW, decision_id=decision.id, outcome="failed")

    verdicts = [
        call("plan", "--at", at, "--json").json[0]["targets"][0]["verdict"]
        for at in ("2026-01-01T12:04:59", "2026-01-01T12:05:00Z")
    ]

    assert verdicts == ["retry", "run"]


@pytest.mark.usefixtures("made")
def test_an_asset_is_explained_by_the_versions_that_were_read(call: Call) -> None:
    answer = call("explain", "--asset", B.uri)

    assert "first" in answer.out.splitlines()[-1]
    assert answer.out.splitlines()[-1].endswith("changed")
    (read,) = call("explain", "--asset", B.uri, "--json").json["reads"]
    assert (read["read"], read["now"], read["same"]) == ("first", "second", False)
