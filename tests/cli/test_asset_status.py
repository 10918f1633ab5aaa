"""`assets status`, `plan` and `explain --asset`: for people and for programs (8.9, 8.16)."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.text import Text

from assetflow import Asset, Eager, FreshnessPolicy
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger
from tests.cli.conftest import Call, screen_of
from tests.ledger.making import NOW, A, B, C, deploy, deploy_maker, update
from tests.ledger.read.test_ended_runs import ended


@pytest.fixture
def made(ledger: Ledger) -> Ledger:
    """B is made from A, and C from B; A has changed since B was made, and C is missing."""
    deploy_maker(ledger, Eager(A), [B], [A], "make-b/x", code_version="1")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    for asset, version in ((A, "first"), (B, "made"), (A, "second")):
        ledger.writer.events.record([update(asset, data_version=version)], NOW)
    return ledger


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("columns", [80, 160])
def test_two_columns_of_one_title_are_drawn(call: Call, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    screen = screen_of(columns, monkeypatch)
    call("explain", "--asset", B.uri)
    (titles,) = [each for each in Text.from_ansi(screen.getvalue()).plain.splitlines() if "recorded" in each]
    assert titles.count("recorded") == 2


@pytest.mark.usefixtures("made")
def test_every_asset_that_an_eager_flow_needs_is_listed(call: Call) -> None:
    assert [each["state"] for each in call("assets", "status", "--json").json] == ["source", "stale", "missing"]
    _, raw, fact, board = call("assets", "status").out.splitlines()
    assert raw.split()[-1] == "source"
    assert "make-b/x" in fact
    assert f"{A.uri} changed: first → second" in fact
    assert "it was never made" in board
    assert [each["uri"] for each in call("assets", "status", "--stale", "--json").json] == [B.uri, C.uri]
    assert call("assets", "status", B.uri).out.splitlines()[:2] == [f"{B.uri}  ▲ stale", "made by make-b/x"]


def test_a_terminal_of_80_columns_breaks_no_column(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "file:///home/somebody/projects/air/data/carriers.json"
    carriers = Asset(long, name="carriers", freshness=FreshnessPolicy(timedelta(minutes=10)))
    deploy_maker(ledger, Eager(), [carriers], [A], "by-carrier/air")
    now = datetime.now(UTC)
    ledger.writer.events.record([update(carriers)], now)
    ledger.writer.clock.run(now, now)
    for command in (("assets", "status"), ("freshness",)):
        screen = screen_of(80, monkeypatch)
        call(*command)
        lines = Text.from_ansi(screen.getvalue()).plain.splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) < 9, "a column is so narrow that its words are broken"
        (line,) = [each for each in lines if each.startswith("carriers ")]
        assert "by-carrier/air" in line
        assert re.fullmatch("Not shown for lack of room: uri(, .*)?; --wide shows everything", lines[-1])
        screen = screen_of(80, monkeypatch)
        call(*command, "--wide")
        assert long in screen.getvalue()


def test_8_13_a_status_says_how_fresh_the_data_is_and_exits_with_1_if_it_fails(ledger: Ledger, call: Call) -> None:
    late = Asset(B.uri, freshness=FreshnessPolicy(timedelta(hours=1)))
    now = datetime.now(UTC)
    deploy_maker(ledger, Eager(), [late], [A], "make-b/x", at=now - timedelta(hours=3))
    for hours, asset, version in ((3, A, "first"), (2, late, "made"), (1, A, "second")):
        then = now - timedelta(hours=hours)
        ledger.writer.events.record([update(asset, data_version=version)], then)
    ledger.writer.clock.run(now, now)

    answer = call("assets", "status", B.uri)
    assert (answer.code, answer.out.splitlines()[2]) == (1, "freshness: fail, 2 h old")
    everything = call("assets", "status", "--json")
    of_a, of_b = everything.json
    assert (everything.code, of_a["freshness"], of_b["freshness"], of_b["feasible"]) == (1, None, "fail", True)
    assert (datetime.fromisoformat(of_b["data_time"]), of_b["lag"] // 60) == (now - timedelta(hours=2), 120)
    assert call("assets", "status", A.uri).code == 0
    assert "fail, 2 h old" in call("assets", "status").out


@pytest.mark.usefixtures("ledger")
def test_calls_that_cannot_be_answered_say_why(call: Call) -> None:
    assert call("assets", "status").out.startswith("No flow keeps assets up to date")
    assert call("plan").out.startswith("No flow keeps assets up to date")
    assert call("assets", "status", "--key", "2026-01-01").code == 2
    assert call("explain", "--key", "2026-01-01").code == 2


@pytest.mark.usefixtures("made")
def test_the_plan_says_what_runs_and_what_waits(call: Call) -> None:
    first, second = call("plan", "--json").json
    assert [each["targets"][0]["verdict"] for each in (first, second)] == ["in_progress", "waits"]
    assert second["targets"][0]["words"] == f"It waits for make-b/x: {C.uri} was never made"
    assert "when make-b/x ended" in call("plan", "make-c").out


def test_the_plan_of_a_later_time(ledger: Ledger, call: Call) -> None:
    now = datetime.now(UTC)
    deploy_maker(ledger, Eager(retries=1), [B], [A], "make-b/x")
    ((_, (decision,)),) = ledger.writer.events.record([update(A)], now)
    ledger.writer.decisions.ended("Failed", now, decision_id=decision.id, outcome="failed")
    verdicts = [
        call("plan", "--at", f"{now + timedelta(minutes=minutes):%FT%T}", "--json").json[0]["targets"][0]["verdict"]
        for minutes in (4, 6)
    ]
    assert verdicts == ["retry", "run"]


@pytest.mark.usefixtures("made")
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


@pytest.mark.usefixtures("made")
def test_an_asset_is_explained_by_the_versions_that_were_read(call: Call) -> None:
    answer = call("explain", "--asset", B.uri)
    assert "first" in answer.out.splitlines()[-1]
    assert answer.out.splitlines()[-1].endswith("changed")
    (read,) = call("explain", "--asset", B.uri, "--json").json["reads"]
    assert (read["read"], read["now"], read["same"]) == ("first", "second", False)


def test_an_asset_that_nothing_compares_is_explained_by_its_newest_inputs(ledger: Ledger, call: Call) -> None:
    deploy(ledger, A, "make-b/x")
    for asset, fields in ((A, {"data_version": "first"}), (B, {"inputs": {A.uri: 1}}), (A, {"data_version": "second"})):
        ledger.writer.events.record([update(asset, **fields)], NOW)
    (read,) = call("explain", "--asset", B.uri, "--json").json["reads"]
    assert (read["uri"], read["read"], read["now"], read["same"]) == (A.uri, "first", "second", False)
    assert call("explain", "--asset", B.uri).out.splitlines()[-1].endswith("changed")
    assert "No update of it names what it was made from." in call("explain", "--asset", A.uri).out


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


@pytest.mark.usefixtures("made")
def test_a_maker_that_failed_is_named_where_what_waits_for_it_is_explained(ledger: Ledger, call: Call) -> None:
    by_key = PartitionedAssetTimetable(assets=B, default_partition_mapper=IdentityMapper())
    deploy(ledger, by_key, "report/x")
    maker = ledger.reader.consumers.named("make-b/x")
    assert maker is not None
    failed = replace(ended(maker.consumer.deployment_id, 1, "crashed", "mon"), error="no memory")
    ledger.writer.ended_runs.add([failed], NOW)
    told = "make-b/x crashed for mon at 2026-01-01 12:01:00 UTC: no memory"
    assert told in call("explain", "--asset", B.uri).out
    (found,) = call("explain", "--asset", B.uri, "--key", "mon", "--json").json["failed_makers"]
    assert (found["flow"], found["error"]) == ("make-b/x", "no memory")
    assert call("explain", "--asset", B.uri, "--key", "tue", "--json").json["failed_makers"] == []
    assert f"! {told}" in call("explain", "report/x", "--key", "mon").out
