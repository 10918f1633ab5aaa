"""Each decision gets exactly one run, oldest first, whatever Prefect answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from assetflow.core.assets import Asset
from assetflow.core.events import Recording
from assetflow.errors import LeaseLost, LedgerLocked, PrefectRefused, PrefectUnreachable
from assetflow.evaluator import launch as launch_module
from assetflow.evaluator.health import Health
from assetflow.evaluator.launch import FAILURES_UNTOLD, Launcher
from assetflow.evaluator.ports import Launch
from tests.evaluator.fakes import FakeLedger, FakeLogs, FakeRuns, recording, until, update


class Pad:
    """A launcher on a ledger and a Prefect in memory; start it with `go`."""

    def __init__(self) -> None:
        self.ledger = FakeLedger()
        self.runs = FakeRuns()
        self.logs = FakeLogs()
        self.told: list[UUID] = []
        self.health = Health()
        self.launcher = Launcher(self.ledger, self.runs, self.logs, self.health, self._tell)
        self.tasks: list[asyncio.Task[None]] = []

    def _tell(self, launch: Launch, run: UUID) -> None:  # noqa: ARG002
        self.told.append(launch.decision.id)

    async def decide(self, number: int) -> list[UUID]:
        """That many decisions; their ids."""
        if not self.ledger.book.consumers:
            self.ledger.consumer("report/daily", Asset("a"))
        await self.ledger.record([recording("a") for _ in range(number)])
        return [decision.id for decision in self.ledger.book.decisions[-number:]]

    def go(self) -> None:
        self.tasks.append(asyncio.create_task(self.launcher.run()))


@pytest.fixture
async def pad(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pad]:
    monkeypatch.setattr(launch_module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(launch_module, "FIRST_PAUSE", 0.002)
    pad = Pad()
    yield pad
    for task in pad.tasks:
        task.cancel()
    await asyncio.gather(*pad.tasks, return_exceptions=True)


async def test_decisions_are_launched_oldest_first_one_at_a_time(pad: Pad) -> None:
    decisions = await pad.decide(5)
    pad.go()
    await until(lambda: len(pad.ledger.runs) == 5)
    assert pad.runs.order == pad.told == decisions
    assert pad.runs.most_at_once == 1


async def test_the_log_names_decision_and_run(pad: Pad, caplog: pytest.LogCaptureFixture) -> None:
    (decision,) = await pad.decide(1)
    with caplog.at_level(logging.INFO, "assetflow.evaluator"):
        pad.go()
        await until(lambda: pad.told)
    (told,) = (vars(each) for each in caplog.records if "started run" in each.message)
    assert (told["consumer"], told["decision"]) == ("report/daily", str(decision))
    assert told["flow_run"] == str(pad.ledger.runs[decision])


async def test_a_decision_that_another_process_made_is_found_without_being_told(pad: Pad) -> None:
    pad.go()
    await asyncio.sleep(0)
    await pad.decide(1)
    await until(lambda: pad.ledger.runs)


async def test_the_context_names_decision_consumer_and_events(pad: Pad) -> None:
    (decision,) = await pad.decide(1)
    pad.go()
    await until(lambda: pad.ledger.runs)
    context = pad.runs.contexts[decision]
    assert (context.decision, context.consumer, context.partition_key) == (decision, "report/daily", None)
    assert [event.uri for event in context.events or ()] == ["a"]


async def test_events_that_are_too_large_lie_in_an_artifact(pad: Pad) -> None:
    pad.ledger.consumer("report/daily", Asset("a"))
    event = update("a", extra={"text": "x" * 70_000})
    await pad.ledger.record([Recording(event.id, (event,))])
    pad.go()
    await until(lambda: pad.ledger.runs)
    (context,) = pad.runs.contexts.values()
    assert context.events is None
    assert context.artifact is not None
    assert pad.logs.kept == pad.ledger.book.decisions


@pytest.mark.parametrize("error", [PrefectUnreachable("503"), LedgerLocked("held"), ConnectionError("cut")])
async def test_what_may_work_later_is_tried_again(pad: Pad, error: Exception) -> None:
    first, second = await pad.decide(2)
    pad.runs.fails[first] = [error, error]
    pad.go()
    await until(lambda: len(pad.ledger.runs) == 2)
    assert pad.runs.order == [first, second]
    assert pad.ledger.dead == {}


async def test_a_decision_that_waits_for_long_says_why(pad: Pad, caplog: pytest.LogCaptureFixture) -> None:
    (decision,) = await pad.decide(1)
    pad.runs.fails[decision] = [PrefectUnreachable("busy")] * (FAILURES_UNTOLD + 2)
    pad.go()
    await until(lambda: pad.ledger.runs, seconds=20)
    assert pad.ledger.attempts == [(decision, "busy")] * 2
    assert caplog.text.count("waits for its run: busy") == 1


async def test_a_run_that_could_not_be_marked_is_found_again_not_made_twice(pad: Pad) -> None:
    (decision,) = await pad.decide(1)
    pad.ledger.fails["launched"] = [LedgerLocked("held")]
    pad.go()
    await until(lambda: pad.ledger.runs)
    assert pad.runs.order == [decision]


async def test_one_that_has_lost_the_lease_launches_nothing_more(pad: Pad) -> None:
    await pad.decide(3)
    pad.ledger.fails["launched"] = [LeaseLost("stood still")]
    with pytest.raises(LeaseLost):
        await pad.launcher.run()
    assert len(pad.runs.order) == 1


async def test_what_prefect_refuses_for_good_is_undeliverable_with_the_reason(pad: Pad) -> None:
    first, second = await pad.decide(2)
    pad.runs.fails[first] = [PrefectRefused("Prefect answers 404: Deployment not found")]
    pad.go()
    await until(lambda: pad.ledger.dead and pad.ledger.runs)
    assert pad.ledger.dead == {first: "Prefect answers 404: Deployment not found"}
    assert list(pad.ledger.runs) == [second]
    assert pad.told == [second]


@pytest.mark.parametrize("error", [PrefectUnreachable("503"), ValueError("a bug")])
async def test_a_consumer_whose_runs_cannot_be_made_holds_up_no_other(pad: Pad, error: Exception) -> None:
    await pad.decide(6)
    pad.ledger.consumer("other/daily", Asset("b"))
    await pad.ledger.record([recording("b")])
    *held_up, other = [decision.id for decision in pad.ledger.book.decisions]
    pad.runs.fails[held_up[0]] = [error] * 50
    pad.go()
    await until(lambda: other in pad.ledger.runs)
    assert pad.runs.order == [other]
    pad.runs.fails.clear()
    pad.launcher.retry_now()
    await until(lambda: len(pad.ledger.runs) == 7)
    assert pad.runs.order == [other, *held_up]


async def test_runs_are_made_in_the_order_of_the_decisions_whatever_fails(pad: Pad) -> None:
    pad.ledger.consumer("report/daily", Asset("a"))
    pad.ledger.consumer("other/daily", Asset("a"))
    await pad.ledger.record([recording("a") for _ in range(20)])
    decisions = pad.ledger.book.decisions
    for decision in decisions[::3]:
        pad.runs.fails[decision.id] = [PrefectUnreachable("503")]
    pad.go()
    await until(lambda: len(pad.ledger.runs) == 40)
    for consumer in (1, 2):
        made = [decision.id for decision in decisions if decision.consumer == consumer]
        assert [each for each in pad.runs.order if each in made] == made


async def test_when_prefect_is_back_nobody_waits_any_longer(pad: Pad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_module.Backoff, "next", lambda _: 3600.0)
    (decision,) = await pad.decide(1)
    pad.runs.fails[decision] = [PrefectUnreachable("down")]
    pad.go()
    await until(lambda: not pad.runs.fails[decision] and pad.launcher.is_idle)
    assert pad.ledger.runs == {}
    pad.launcher.retry_now()
    await until(lambda: pad.ledger.runs)


async def test_a_busy_prefect_is_asked_again_at_once_and_notes_wait_meanwhile(
    pad: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "LOOK_EVERY", 3600.0)
    (decision,) = await pad.decide(1)
    pad.runs.fails[decision] = [PrefectUnreachable("503")] * 3
    pad.go()
    await until(lambda: len(pad.runs.fails[decision]) < 3)
    assert not pad.launcher.is_idle
    await until(lambda: pad.launcher.is_idle)
    assert list(pad.ledger.runs) == [decision]


async def test_an_attempt_that_an_operator_took_away_is_waited_for_no_longer(
    pad: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "LOOK_EVERY", 3600.0)
    (decision,) = await pad.decide(1)
    monkeypatch.setattr(launch_module, "LONGEST_PAUSE", 0.002)
    pad.runs.fails[decision] = [PrefectUnreachable("503")] * 100_000
    pad.go()
    await until(lambda: len(pad.runs.fails[decision]) < 99_999)
    pad.ledger.dead[decision] = "taken out"
    await until(lambda: pad.launcher.is_idle)
    assert pad.ledger.runs == {}
