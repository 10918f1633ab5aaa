"""Every command that prints, drawn in a terminal, and `--watch`, which draws it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import cyclopts
import pytest
from rich.text import Text

from assetflow import Asset, AssetWatcher, Eager, FreshnessPolicy
from assetflow.cli import output, run
from assetflow.cli.app import app
from assetflow.core.values.timing import Deadline
from assetflow.ledger import Ledger
from assetflow.watchers import MessageQueueTrigger
from tests.cli.conftest import Call
from tests.cli.screen import screen_of
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.ledger.making import deploy_maker
from tests.ledger.read.test_ended_runs import ended

FACTS = Asset("s3://lake/facts", name="facts", freshness=FreshnessPolicy(timedelta(hours=1)))
DECISION = "DECISION"
COMMANDS = [
    "assets checks orders",
    "assets hide s3://lake/old",
    "assets ls",
    "assets show orders",
    "assets status",
    "assets status facts",
    "assets unhide s3://lake/old",
    "backfill ls",
    "backfill facts --dry-run",
    "backfill facts+",
    "backfill resume 1",
    "backfill show 1",
    "backfill stop 1",
    "consumers ls",
    "consumers refused",
    "database check",
    "database upgrade",
    "deadlines ls",
    f"decisions give-up {DECISION} --why wrong",
    "decisions ls",
    f"decisions show {DECISION}",
    "emit orders",
    "emit orders --dry-run",
    "events ls",
    "events ls --refused",
    f"events show {event_id(1)}",
    "explain --asset facts",
    "explain --asset orders",
    "explain core",
    "explain daily",
    "explain report",
    "freshness",
    "lineage facts",
    "observe orders --version 7",
    "partitions gaps hourly --from 2026-01-01T07:00:00 --to 2026-01-01T09:00:00",
    "partitions ls daily",
    "plan",
    "queue ls",
    "queue ls report",
    f"queue replay {DECISION}",
    "queue rm report --why wrong",
    "retry core",
    "consumers show report",
    "runs ls --plain",
    "runs ls --running",
    f"runs show {event_id(7)}",
    "simulate SCENARIO",
    "status",
    "trace orders",
    "version",
    "watchers ls",
]
# They begin or wait for processes, read a project or ask Prefect for something, which tests of their own do.
ELSEWHERE = {
    *("consumers pause", "consumers prune", "consumers resume", "consumers wait", "database prune", "demo", "dev"),
    *(
        "diff",
        "evaluator start",
        "init",
        "lint",
        "server start",
        "spark start",
        "spark stop",
        "watcher start",
        "watchers pause",
        "watchers show",
    ),
    "watchers resume",
}


@pytest.fixture
def full(ledger: Ledger) -> str:
    """A ledger with something for each command; the id of a decision in it."""
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS, deadline=Deadline(timedelta(hours=1)))
    deploy(ledger, "daily/shop", ROLLED_UP)
    deploy_maker(ledger, Eager(), [FACTS], [ORDERS], "core/shop", code_version="1")
    (decision, *_) = [*update(ledger, ORDERS, 1), *update(ledger, CUSTOMERS, 2)]
    update(ledger, ORDERS, 3)
    update(ledger, Asset("s3://lake/old"), 5)
    update(ledger, HOURLY, 4, "2026-01-01T07:00:00")
    of = decision.deployment_id
    ledger.writer.ended_runs.add([replace(ended(of, 5), flow_run_id=event_id(7), decision=decision.id)], NOON)
    ledger.writer.events.refuse({"x": 1}, "the URI is blank", "1.5", "prefect", event_id(9), NOON)
    ledger.writer.clock.run(NOON + timedelta(hours=4), NOON + timedelta(hours=4))
    return str(decision.id)


def commands(of: cyclopts.App, *above: str) -> Iterator[str]:
    names = [name for name in of if not name.startswith("-")]
    for name in names:
        yield from commands(of[name], *above, name)
    if not names or of.default_command is not None:
        yield " ".join(above)


def test_every_command_is_drawn_here_or_elsewhere() -> None:
    known = set(commands(app))
    assert {each for each in known if not any(f"{line} ".startswith(f"{each} ") for line in COMMANDS)} == ELSEWHERE


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_drawn(full: str, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"name": "x", "consumers": {"c": "a"}, "steps": [{"event": "a"}, {"tick": True}]}))
    if line.startswith("backfill "):
        call("backfill", "facts+")
    if line.startswith("queue replay"):
        call("decisions", "give-up", full, "--why", "wrong")
    screen = screen_of(50, monkeypatch)
    answer = call(*line.replace(DECISION, full).replace("SCENARIO", str(scenario)).split())
    assert (answer.code in (0, 1), screen.getvalue().strip() != "") == (True, True), answer.err


def test_a_list_of_watchers_fits_a_terminal(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
    watched = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
    deploy(ledger, "report/shop", watched)
    screen = screen_of(80, monkeypatch)
    call("watchers", "ls")
    lines = Text.from_ansi(screen.getvalue()).plain.splitlines()
    assert any("orders-queue" in line and "s3://shop/orders" in line and " new" in line for line in lines)
    assert all(len(line) <= 80 for line in lines), lines


@pytest.mark.usefixtures("full")
def test_sentences_name_things_by_eight_characters(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(100, monkeypatch)
    call("explain", "report")
    assert f"event {str(event_id(2))[:8]}, recorded" in " ".join(screen.getvalue().split())
    assert str(event_id(2)) not in screen.getvalue()


def test_a_key_that_waits_again_is_listed_once(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(ledger, "daily/shop", ROLLED_UP)
    for minute, hour in enumerate(range(24)):
        update(ledger, HOURLY, minute, f"2026-01-01T{hour:02d}:00:00")
    update(ledger, HOURLY, 50, "2026-01-01T00:00:00")
    screen = screen_of(160, monkeypatch)
    call("partitions", "ls", "daily")
    (row,) = [line for line in screen.getvalue().splitlines() if line.startswith("2026-01-01")]
    assert "pending, waiting before" in row


def test_a_list_is_shown_anew_until_ctrl_c(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    update(ledger, ORDERS, 1)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt
        update(ledger, CUSTOMERS, 2)

    monkeypatch.setattr(output, "sleep", pause)
    screen = screen_of(100, monkeypatch)
    assert run(["assets", "ls", "--watch"]) == 0
    _, first, second = screen.getvalue().split("\x1b[H\x1b[J")
    assert "Ctrl+C ends it" in first
    assert ["customers" in each for each in (first, second)] == [False, True]
    assert pauses == [2.0, 2.0]


@pytest.mark.usefixtures("ledger")
def test_what_goes_to_a_program_is_not_watched(call: Call) -> None:
    answer = call("events", "ls", "--watch")
    assert (answer.code, answer.out) == (2, "")
    assert "--watch needs a terminal" in answer.err


def test_the_option_is_in_the_help(call: Call) -> None:
    lists = ("status", "consumers ls", "runs ls", "queue ls", "decisions ls", "partitions ls")
    for command in (*lists, "assets status", "plan", "lineage"):
        out = call(*command.split(), "--help").out
        assert "--watch" in out
        assert "Show it anew every two seconds" in out
        assert "--json" in out
