"""Runs that wait for a worker, as Prefect tells it when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.explain import DecisionFacts, KnownNames, NotStarted, RunFacts, explain_decision
from assetflow.core.values.consumers import Decision
from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.open_runs import not_started, with_run_now

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN = UUID(int=7)


def row(state: str, name: str, *, seconds: int, pool: str | None = "laptop") -> dict[str, Any]:
    moment = (NOW - timedelta(seconds=seconds)).isoformat()
    return {
        "id": str(RUN),
        "state_type": state,
        "state": {"type": state, "name": name, "timestamp": moment},
        "next_scheduled_start_time": moment if state == "SCHEDULED" else None,
        "work_pool_name": pool,
    }


class Prefect:
    """Answers each request with the same runs."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows

    async def get(self, path: str) -> Any:
        assert path == f"/flow_runs/{RUN}"
        return self.rows[0]

    async def post(self, path: str, body: Any) -> Any:
        assert (path, body["flow_runs"]["id"]) == ("/flow_runs/filter", {"any_": [str(RUN)]})
        return list(self.rows)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (row("SCHEDULED", "Late", seconds=60), "start one with `prefect worker start --pool laptop`"),
        (row("SCHEDULED", "Scheduled", seconds=60, pool="my pool"), "--pool 'my pool'`"),
        (row("SCHEDULED", "Late", seconds=60, pool=None), "for the process that serves its deployment"),
        (row("PENDING", "Pending", seconds=60), "A worker took it at 2026-01-01 11:59:00 UTC, and it has not begun"),
    ],
)
def test_a_run_that_waits_is_told_with_what_to_do(given: dict[str, Any], words: str) -> None:
    prefect: Any = Prefect(given)
    assert list(asyncio.run(not_started(prefect, [RUN], NOW))) == [RUN]
    assert words in explained(given).run.words


@pytest.mark.parametrize(
    "given",
    [
        row("SCHEDULED", "Scheduled", seconds=5),
        row("SCHEDULED", "Scheduled", seconds=-60),
        row("SCHEDULED", "AwaitingConcurrencySlot", seconds=60),
        row("SCHEDULED", "AwaitingRetry", seconds=60),
        row("PENDING", "Pending", seconds=5),
    ],
)
async def test_others_do_not_wait_for_a_worker(given: dict[str, Any]) -> None:
    prefect: Any = Prefect(given)
    assert await not_started(prefect, [RUN], NOW) == {}


def explained(*rows: dict[str, Any], ended: datetime | None = None, state: str = "Completed") -> Any:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Any]:
        if not rows:
            raise PrefectUnreachable("Prefect does not answer")
        yield Prefect(*rows)

    decision = Decision(UUID(int=1), 1, UUID(int=2), None, (), NOW)
    run = RunFacts(RUN, launched=NOW - timedelta(minutes=5), ended=ended, state=state if ended else "")
    told = explain_decision(DecisionFacts(decision, "report/shop", run), None, KnownNames())
    return with_run_now(told, NOW, opened)


def test_a_run_that_has_ended_is_not_asked_about() -> None:
    assert explained(row("SCHEDULED", "Late", seconds=60), ended=NOW).facts.run.not_started is None


def test_without_an_answer_the_explanation_stays() -> None:
    assert explained().run.words == f"It started the flow run {RUN} at 2026-01-01 11:55:00 UTC."


def test_what_was_found_is_kept_with_the_run() -> None:
    found = explained(row("SCHEDULED", "Late", seconds=60)).facts.run.not_started
    assert found == NotStarted(NOW - timedelta(seconds=60), pool="laptop")


def failed(message: str | None, kind: str = "FAILED") -> Any:
    return explained({"state": {"type": kind, "message": message}}, ended=NOW, state="Failed").run


def test_a_run_that_failed_says_why_in_one_short_line() -> None:
    told = failed("Flow run encountered an exception:\n  ValueError: no orders")
    assert told.message == "Flow run encountered an exception: ValueError: no orders"
    assert "which ended Failed at 2026-01-01 12:00:00 UTC: Flow run encountered" in told.words
    assert len(failed("x" * 1000).message) == 301


@pytest.mark.parametrize(
    "run", [failed(None), failed("it runs again", "RUNNING"), explained(ended=NOW, state="Failed").run]
)
def test_without_a_message_nothing_is_said_of_the_reason(run: Any) -> None:
    assert run.message == ""
    assert "which ended Failed at 2026-01-01 12:00:00 UTC. `prefect" in run.words
