"""`assets status`, `plan` and `explain --asset`: for people and for programs (8.9, 8.16)."""

import pytest

from assetflow import Eager
from assetflow.core.partitions import IdentityMapper
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.ledger.making import NOW, A, B, C, deploy_maker, update


@pytest.mark.usefixtures("stale")
def test_every_asset_that_an_eager_flow_needs_is_listed(call: Call) -> None:
    assert [each["state"] for each in call("assets", "status", "--json").json] == ["source", "stale", "missing"]
    _, raw, fact, board = call("assets", "status").out.splitlines()
    assert raw.split()[-1] == "source"
    assert "make-b/x" in fact
    assert f"{A.uri} changed: first → second" in fact
    assert "it was never made" in board
    assert [each["uri"] for each in call("assets", "status", "--stale", "--json").json] == [B.uri, C.uri]
    assert call("assets", "status", B.uri).out.splitlines()[:2] == [f"{B.uri}  ▲ stale", "made by make-b/x"]


@pytest.mark.usefixtures("stale")
def test_the_plan_says_what_runs_and_what_waits(call: Call) -> None:
    first, second = call("plan", "--json").json
    assert [each["targets"][0]["verdict"] for each in (first, second)] == ["in_progress", "waits"]
    assert second["targets"][0]["words"] == f"It waits for make-b/x: {C.uri} was never made"
    assert "when make-b/x ended" in call("plan", "make-c").out


@pytest.mark.usefixtures("stale")
def test_a_plan_of_a_time_that_is_over_is_refused(call: Call) -> None:
    answer = call("plan", "--at", "2026-01-01T12:00")
    assert answer.code != 0
    assert "2026-01-01 12:00:00 UTC is over: a plan says what would run from now on" in answer.err


def test_the_plan_of_one_key(ledger: Ledger, call: Call) -> None:
    by_key = Eager(A, default_partition_mapper=IdentityMapper())
    deploy_maker(ledger, by_key, [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(), [C], [A], "make-c/x")
    for key in ("k1", "k2"):
        ledger.writer.events.record([update(A, partition_key=key)], NOW)
    (found,) = call("plan", "--key", "k2", "--json").json
    (target,) = found["targets"]
    assert (target["target_key"], target["verdict"], found["total_targets"]) == ("k2", "in_progress", 1)
    assert found["words"] == "Of 1 key: 1 running."
    answer = call("plan", "--key", "k3")
    assert answer.code != 0
    assert "no Eager consumer has key 'k3'" in answer.err


def test_8_12_an_asset_is_explained_by_the_source_that_its_data_time_follows_from(ledger: Ledger, call: Call) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make-b/x")
    for asset, fields in ((A, {}), (B, {"inputs": {A.uri: 1}}), (A, {})):
        ledger.writer.events.record([update(asset, **fields)], NOW)
    lines = call("explain", "--asset", B.uri).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("data path"))
    assert [line.split()[0] for line in lines[start + 1 :]] == [B.uri, A.uri]
    assert lines[-1].endswith("source")
    steps = call("explain", "--asset", B.uri, "--json").json["data_path"]
    assert [(each["uri"], each["source"]) for each in steps] == [(B.uri, False), (A.uri, True)]
    assert "data path" not in call("explain", "--asset", A.uri).out
