"""`assetflow status`: what a person and a program are told, also when nothing answers."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
import respx

from assetflow import Asset, AssetWatcher
from assetflow.core.values.events import Recording
from assetflow.errors import LedgerError
from assetflow.evaluator.health import Health
from assetflow.evaluator.process.status import HeldUpWriter
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import LEASE_SECONDS, NOT_WATCHING, STOPPED, Role
from assetflow.ledger.read.freshness import HELD_UP
from assetflow.prefect_io.recordings import recording_to_artifact
from assetflow.watchers import FileTrigger
from tests.cli.conftest import API_URL, Call
from tests.cli.shop import NOON, ORDERS, deploy, event_id, update
from tests.evaluator.fakes import recording
from tests.evaluator.ledgers import LedgerHere

# No process has so high a number.
NOBODY = 2**30


def evaluate(ledger: Ledger, *, ago: float = 0, pid: int | None = None) -> None:
    """This process evaluates, or another one, and gave its last sign of life so many seconds ago."""
    here = Holder.this_process(uuid4())
    holder = here if pid is None else Holder(here.id, here.host, pid)
    ledger.writer.lease.acquire(
        holder, datetime.now(UTC) - timedelta(seconds=ago), seconds=LEASE_SECONDS if ago else 3600
    )


def prefect_holds(*recordings: Recording) -> None:
    """Prefect answers, and has these as artifacts."""
    now = datetime.now(UTC).isoformat()
    artifacts = [
        {"id": str(uuid4()), "created": now, "updated": now, **recording_to_artifact(each)} for each in recordings
    ]
    respx.post(f"{API_URL}/artifacts/filter").respond(200, json=artifacts)
    respx.post(f"{API_URL}/events/filter").respond(200, json={"events": [], "total": 0, "next_page": None})
    respx.get(f"{API_URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})


@respx.mock
def test_all_is_well(ledger: Ledger, call: Call) -> None:
    evaluate(ledger)
    prefect_holds()
    answer = call("status", "--json")
    assert answer.code == 0, answer
    said = answer.json
    assert (said["ok"], said["problems"]) == (True, [])
    assert said["evaluator"]["alive"]
    assert said["standbys"] == []
    assert said["prefect"] == {"url": API_URL, "reachable": True, "error": None}
    assert said["lag"] == {"updates": 0, "oldest": None}


@respx.mock
def test_watchers_that_fail_or_that_nobody_runs_are_problems(ledger: Ledger, call: Call) -> None:
    evaluate(ledger)
    prefect_holds()
    assert " watching" not in call("status").out
    watcher = AssetWatcher("landing", FileTrigger("/in/*"))
    deploy(ledger, "report/nightly", Asset(ORDERS.uri, watchers=[watcher]))
    assert call("status", "--json").json["problems"] == [str(NOT_WATCHING)]
    ledger.writer.lease.acquire(Holder.this_process(uuid4(), Role.WATCHERS), seconds=3600)
    assert call("status").code == 0
    ledger.writer.watchers.set_state(["landing"], "failing", "no such folder", NOON)
    answer = call("status", "--json")
    assert (answer.code, answer.json["problems"]) == (1, ["the watcher landing fails: no such folder"])
    assert answer.json["watchers"]["failing"] == [{"name": "landing", "reason": "no such folder"}]
    assert "1 watching, 1 failing" in call("status").out


@respx.mock
def test_what_prefect_holds_and_the_ledger_does_not_is_the_lag(ledger: Ledger, call: Call) -> None:
    evaluate(ledger)
    known, unknown = recording("a"), recording("b")
    retried = Recording(known.id, recording("a").events)
    ledger.writer.events.record([known], NOON)
    bad = recording("bad")
    ledger.writer.events.refuse({}, "it cannot be recorded", None, "prefect", bad.id, NOON)
    prefect_holds(known, retried, unknown, bad)
    answer = call("status", "--json")
    assert answer.json["lag"]["updates"] == 1
    assert answer.code == 0, "it came a moment ago"


@respx.mock
def test_a_dead_evaluator_and_decisions_that_wait(ledger: Ledger, call: Call) -> None:
    evaluate(ledger, ago=60, pid=NOBODY)
    deploy(ledger, "report/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 1)
    ledger.writer.decisions.attempt_failed(decision.id, "Prefect answers 503")
    ledger.writer.events.refuse({}, "blank", "1.5", "prefect", event_id(2), NOON)
    prefect_holds()
    answer = call("status", "--json")
    assert answer.code == 1
    assert len(answer.json["problems"]) == 2
    assert answer.json["problems"][0] == str(STOPPED)
    assert "Prefect answers 503" in answer.json["problems"][1]
    assert answer.json["waiting"] == {"decisions": 1, "oldest": "2026-01-01T12:01:00Z"}
    assert answer.json["refused"] == 1
    told = call("status").out
    assert f"dead or frozen: process {NOBODY}" in told
    assert "events ls --refused" in told


@respx.mock
def test_what_holds_the_evaluator_up_is_said_after_a_minute(ledger: Ledger, call: Call) -> None:
    evaluate(ledger)
    prefect_holds()
    health = Health()
    health.down("ledger", LedgerError("the database refuses: parser stack overflow"))
    asyncio.run(run_briefly(HeldUpWriter(LedgerHere(ledger), health)))
    soon = call("status", "--json")
    assert soon.code == 0, soon
    assert [each["name"] for each in soon.json["held_up"]] == ["ledger"]
    (trouble,) = cast(Any, ledger.reader.cursor(HELD_UP))
    ledger.writer.set_cursor(HELD_UP, [{**trouble, "since": (datetime.now(UTC) - timedelta(minutes=2)).isoformat()}])
    late = call("status")
    assert late.code == 1
    assert "the evaluator is held up: ledger: the database refuses: parser stack overflow" in late.out


async def run_briefly(writer: HeldUpWriter) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await writer.run()


@pytest.mark.parametrize("lease", [True, False])
def test_prefect_cannot_be_reached(ledger: Ledger, call: Call, lease: bool) -> None:
    if lease:
        evaluate(ledger)
    answer = call("status")
    assert answer.code == 1
    assert "Prefect cannot be asked" in answer.out
    assert ("stopped; start it" in answer.out) is not lease


@respx.mock
@pytest.mark.parametrize("answer", [{}, [], ["ok"], {"events": 5}, {"events": [{}]}, "ok", 5, None], ids=str)
def test_something_that_is_not_prefect_answers_with_json(ledger: Ledger, call: Call, answer: object) -> None:
    evaluate(ledger)
    respx.route().respond(200, json=answer)
    said = call("status", "--json")
    assert (said.code, said.err) == (1, "")
    (problem,) = said.json["problems"]
    assert "something that is not Prefect's API answers" in problem
    assert "PREFECT_API_URL" in problem
