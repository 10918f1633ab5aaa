"""Each decision gets exactly one run, oldest first, whatever Prefect answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Recording
from assetflow.errors import LeaseLost, LedgerLocked, PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.evaluator.health import Health
from assetflow.evaluator.runs import launch as launch_module
from assetflow.evaluator.runs.launch import ATTEMPTS_TO_SEND, FAILURES_NOT_LOGGED, Launch, Launcher
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import FakeLogs, FakeRuns, recording, update
from tests.evaluator.ledgers import LedgerHere


class Pad:
    """A launcher on a ledger and a Prefect in memory; start it with `go`."""

    def __init__(self, ledger: LedgerHere) -> None:
        self.ledger = ledger
        self.runs = FakeRuns()
        self.logs = FakeLogs()
        self.told: list[UUID] = []
        self.health = Health()
        self.launcher = Launcher(self.ledger, self.runs, self.logs, self.health, self._tell)
        self.tasks: list[asyncio.Task[None]] = []

    def _tell(self, launch: Launch, run: UUID) -> None:  # noqa: ARG002
        self.told.append(launch.decision.id)

    def decide(self, number: int) -> list[UUID]:
        if not self.ledger.reader.consumers.all():
            self.ledger.deploy("report/daily", Asset("a"))
        return self.ledger.record(*(recording("a") for _ in range(number)))

    def go(self) -> None:
        self.tasks.append(asyncio.create_task(self.launcher.run()))


@pytest.fixture
async def pad(ledger: LedgerHere, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pad]:
    monkeypatch.setattr(launch_module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(launch_module, "FIRST_PAUSE", 0.002)
    pad = Pad(ledger)
    yield pad
    await cancel(*pad.tasks)


async def test_events_that_are_too_large_for_a_context_are_stored_in_an_artifact(pad: Pad) -> None:
    pad.ledger.deploy("report/daily", Asset("a"))
    event = update("a", extra={"text": "x" * 70_000})
    pad.ledger.record(Recording(event.id, (event,)))
    pad.go()
    await until_async(lambda: pad.ledger.runs)
    (context,) = pad.runs.contexts.values()
    assert context.events is None
    assert context.artifact is not None
    assert [(each.id, name) for each, name in pad.logs.kept] == [(*pad.ledger.decisions, "report/daily")]


LOCAL: list[Exception] = [Unsendable("surrogates not allowed")]
BUSY: list[Exception] = [PrefectUnreachable("busy")]


@pytest.mark.rule("4.6")
@pytest.mark.parametrize(
    ("fails", "given_up", "logged"),
    [
        (BUSY * 2, "", ""),
        ([LedgerLocked("held")] * 2, "", ""),
        ([ConnectionError("cut")] * 2, "", ""),
        ([PrefectRefused("Deployment not found")], "Deployment not found", "Deployment not found"),
        # The reason why a decision waits is logged once.
        (BUSY * (FAILURES_NOT_LOGGED + 2), "", "waits for its run: busy"),
        ([ValueError("a bug")] * 9, "", "waits for its run: a bug"),
        # An answer of Prefect restarts the count of unsent attempts.
        ([*LOCAL * (ATTEMPTS_TO_SEND - 1), *BUSY, *LOCAL * (ATTEMPTS_TO_SEND - 1)], "", "run: surrogates"),
        (LOCAL * 100, "surrogates not allowed", "surrogates not allowed"),
    ],
)
async def test_a_launch_that_fails_is_tried_again_or_given_up_and_later_ones_go_on(
    pad: Pad, caplog: pytest.LogCaptureFixture, fails: list[Exception], given_up: str, logged: str
) -> None:
    first, second = pad.decide(2)
    pad.runs.fails[first] = [*fails]
    pad.go()
    await until_async(lambda: second in pad.ledger.runs, seconds=20)
    assert pad.runs.order == pad.told == ([second] if given_up else [first, second])
    assert [given_up in reason for reason in pad.ledger.given_up.values()] == [True] * bool(given_up)
    told = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
    assert [logged in message for message in told] == [True] * bool(logged)


@pytest.mark.rule("4.6")
async def test_a_run_that_could_not_be_marked_is_found_again_and_not_created_twice(pad: Pad) -> None:
    (decision,) = pad.decide(1)
    pad.ledger.fails["launched"] = [LedgerLocked("held")]
    pad.go()
    await until_async(lambda: pad.ledger.runs)
    assert pad.runs.order == [decision]


@pytest.mark.failure(
    "Prefect",
    "a request for a run cannot be written",
    "after five attempts it is undeliverable; younger decisions get their runs",
)
async def test_attempts_are_counted(pad: Pad, caplog: pytest.LogCaptureFixture) -> None:
    unsent, waits = pad.decide(2)
    pad.runs.fails = {unsent: LOCAL * 100, waits: BUSY * (FAILURES_NOT_LOGGED + 2) + [ValueError("a bug")]}
    pad.go()
    await until_async(lambda: pad.ledger.runs, seconds=20)
    assert len(pad.runs.fails[unsent]) == 100 - ATTEMPTS_TO_SEND
    assert pad.ledger.decisions[waits].attempts == pad.ledger.calls.count("attempt_failed") == 3
    (bug,) = (each for each in caplog.records if "a bug" in each.message)
    assert bug.exc_info


async def test_an_evaluator_that_lost_the_lease_launches_nothing(pad: Pad) -> None:
    pad.decide(3)
    pad.ledger.fails["launched"] = [LeaseLost("stood still")]
    with pytest.raises(LeaseLost):
        await pad.launcher.run()
    assert len(pad.runs.order) == 1


@pytest.mark.failure(
    "Prefect",
    "the runs of one consumer cannot be created",
    "its younger decisions wait behind the oldest; other consumers are not affected",
)
@pytest.mark.parametrize("error", [PrefectUnreachable("503"), ValueError("a bug")])
async def test_a_consumer_whose_runs_cannot_be_created_does_not_hold_up_the_others(pad: Pad, error: Exception) -> None:
    pad.decide(6)
    pad.ledger.deploy("other/daily", Asset("b"))
    pad.ledger.record(recording("b"))
    *held_up, other = pad.ledger.decisions
    pad.runs.fails[held_up[0]] = [error] * 50
    pad.go()
    await until_async(lambda: other in pad.ledger.runs)
    assert pad.runs.order == [other]
    pad.runs.fails.clear()
    pad.launcher.retry_now()
    await until_async(lambda: len(pad.ledger.runs) == 7)
    assert pad.runs.order == [other, *held_up]


async def test_a_hanging_launch_does_not_hold_up_other_consumers(pad: Pad) -> None:
    hanging, behind = pad.decide(2)
    pad.ledger.deploy("other/daily", Asset("b"))
    pad.runs.hanging.add(hanging)
    pad.go()
    await until_async(lambda: pad.runs.most_at_once)
    for number in range(5):
        pad.ledger.record(recording("b"))
        await until_async(lambda number=number: len(pad.ledger.runs) == number + 1)
    assert behind not in pad.ledger.runs
    pad.runs.hanging.clear()
    await until_async(lambda: behind in pad.ledger.runs)
    assert [each for each in pad.runs.order if each in (hanging, behind)] == [hanging, behind]
