"""The ends of runs are recorded, whether Prefect sends them or is asked for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.rules.runs import DELETED, RunChange, RunEnd, RunGoingOn
from assetflow.core.values.assets import Asset
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator import health as health_module
from assetflow.evaluator.health import Health, keep_going
from assetflow.evaluator.runs import watch as runs_module
from assetflow.evaluator.runs.watch import OVERLAP, RunWatch
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import START, FakeLedger, FakeOpenRuns, FakeRuns, recording


async def nothing() -> None: ...


async def launched(ledger: FakeLedger, number: int) -> list[UUID]:
    ledger.consumer("report/daily", Asset("a"))
    await ledger.record([recording("a") for _ in range(number)])
    runs = [uuid4() for _ in range(number)]
    for decision, run in zip(ledger.state.changes.decisions, runs, strict=True):
        await ledger.launched(decision.id, run)
    return runs


async def test_the_end_of_a_run_is_recorded_once() -> None:
    ledger, ended = FakeLedger(), []
    (run,) = await launched(ledger, 1)
    watch = RunWatch(ledger, FakeRuns(), FakeOpenRuns(), Health(), lambda: ended.append(1), nothing, lambda: START)
    await watch.end(uuid4(), RunEnd("Completed", "completed"))
    assert (ledger.states, ended) == ({}, [])
    await watch.end(run, RunEnd("Skipped", "completed"))
    await watch.end(run, RunEnd("Skipped", "completed"))
    assert ledger.states == {run: "Skipped"}
    assert ended == [1]


async def test_prefect_is_asked_for_the_ends_of_some_runs_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(runs_module, "ASKED_AT_ONCE", 2)
    ledger, prefect = FakeLedger(), FakeRuns()
    runs = await launched(ledger, 5)
    prefect.over = {runs[4]: RunEnd("Crashed", "crashed"), runs[2]: DELETED}
    loop = asyncio.create_task(
        RunWatch(ledger, prefect, FakeOpenRuns(), Health(), lambda: None, nothing, lambda: START, ask_every=0.005).run()
    )
    await until_async(lambda: len(ledger.states) == 2)
    assert ledger.states == {runs[4]: "Crashed", runs[2]: "Deleted"}
    await cancel(loop)


async def test_asking_for_runs_works_again_when_prefect_has_answered_and_not_before(monkeypatch: Any) -> None:
    monkeypatch.setattr(runs_module, "ASKED_BETWEEN_LOOKS", 1)
    ledger, prefect, health = FakeLedger(), FakeOpenRuns(), Health()
    ledger.compares_runs_of = {uuid4()}
    asked: list[bool] = []

    async def no_answer() -> AsyncIterator[RunGoingOn]:
        asked.append("asking for runs" in health.troubles)
        raise PrefectUnreachable("ReadTimeout")
        yield

    monkeypatch.setattr(health_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(prefect, "all", no_answer)
    watch = RunWatch(ledger, FakeRuns(), prefect, health, lambda: None, nothing, lambda: START, ask_every=0.001)
    loop = asyncio.create_task(keep_going("asking for runs", watch.run, health))
    await until_async(lambda: len(asked) == 4)
    assert asked == [False, True, True, True]
    monkeypatch.undo()
    await until_async(lambda: not health.troubles)
    await cancel(loop)


async def test_the_updates_of_a_compared_run_are_recorded_before_its_end() -> None:
    ledger = FakeLedger()
    other, run = await launched(ledger, 2)
    ledger.compared = {run}
    ended_when_read: list[dict[UUID, str]] = []

    async def read_logs() -> None:
        ended_when_read.append(dict(ledger.states))

    watch = RunWatch(ledger, FakeRuns(), FakeOpenRuns(), Health(), lambda: None, read_logs, lambda: START)
    await watch.end(other, RunEnd("Completed", "completed"))
    assert ended_when_read == []
    await watch.end(run, RunEnd("Completed", "completed"))
    assert ended_when_read == [{other: "Completed"}]
    assert ledger.states[run] == "Completed"


def by_hand(deployment: UUID) -> RunGoingOn:
    return RunGoingOn(uuid4(), deployment, None, None, START, by_time=False)


def watching(ledger: FakeLedger, *runs: RunGoingOn) -> RunWatch:
    return RunWatch(ledger, FakeRuns(), FakeOpenRuns(*runs), Health(), lambda: None, nothing, lambda: START)


async def test_8_6_a_run_that_somebody_starts_is_recorded_if_what_it_makes_is_compared() -> None:
    ledger, compared = FakeLedger(), uuid4()
    ledger.compares_runs_of = {compared}
    run, other = by_hand(compared), by_hand(uuid4())
    watch = watching(ledger, run, other)
    await watch.follow(RunChange(run.run, run.deployment))
    await watch.follow(RunChange(other.run, other.deployment))
    await watch.follow(RunChange(uuid4(), compared))
    await watch.follow(RunChange(uuid4(), None))
    assert ledger.going_on == {run.run: run}


async def test_8_6_runs_that_go_on_are_found_by_asking() -> None:
    ledger, compared = FakeLedger(), uuid4()
    run, other = by_hand(compared), by_hand(uuid4())
    await watching(ledger, run, other).look()
    assert ledger.going_on == {}
    ledger.compares_runs_of = {compared}
    await watching(ledger, run, other).look()
    assert ledger.going_on == {run.run: run}


async def test_8_6_the_start_of_a_run_is_recorded_when_prefect_tells_of_it() -> None:
    ledger, deployment = FakeLedger(), uuid4()
    (run,) = await launched(ledger, 1)
    starts = RunChange(run, deployment, began=START)
    await watching(ledger).follow(starts)
    assert ledger.starts == {}
    ledger.compares_runs_of = {deployment}
    watch = watching(ledger)
    await watch.follow(RunChange(run, deployment))
    assert ledger.starts == {}
    await watch.follow(starts)
    assert ledger.starts == {run: START}


async def test_8_6_prefect_is_asked_at_the_end_for_a_start_that_was_not_heard() -> None:
    ledger = FakeLedger()
    other, run, heard = await launched(ledger, 3)
    ledger.compared, ledger.starts = {run, heard}, {heard: START}
    known = FakeOpenRuns(*(by_hand(uuid4())._replace(run=each, began=START) for each in (other, run, heard)))
    watch = RunWatch(ledger, FakeRuns(), known, Health(), lambda: None, nothing, lambda: START)
    for each in (other, run, heard):
        await watch.end(each, RunEnd("Completed", "completed"))
    assert (ledger.starts, known.asked) == ({run: START, heard: START}, [run])


async def test_4_7_a_run_that_leaves_its_final_state_goes_on_again() -> None:
    ledger = FakeLedger()
    (run,) = await launched(ledger, 1)
    watch = watching(ledger)
    await watch.end(run, RunEnd("Failed", "failed"))
    await watch.follow(RunChange(run, None, retried=START))
    assert ledger.retries == [(run, START, START)]


async def test_4_7_what_prefect_did_not_send_is_looked_for_once_it_sends_again() -> None:
    ledger, now = FakeLedger(), [START]
    run, other = await launched(ledger, 2)
    ledger.states[run] = "Failed"
    known = FakeOpenRuns()
    known.newest = {run: START, other: START}
    watch = RunWatch(ledger, FakeRuns(), known, Health(), lambda: None, nothing, lambda: now[0])

    async def changes() -> AsyncIterator[RunChange]:
        now[0] += 2 * OVERLAP
        await watch.look()
        yield RunChange(uuid4(), None)

    await watch.look()
    assert ledger.retries == [(run, START, None)]
    now[0] += OVERLAP
    await watch.listen(changes())
    await watch.look()
    assert known.looked_since == [None, START - OVERLAP, None, START + 2 * OVERLAP]
