"""The ends of runs are recorded, whether Prefect sends them or is asked for them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.ended_runs import RunChange, RunEnd, RunGoingOn
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_schedules import Eager
from assetflow.evaluator.health import Health
from assetflow.evaluator.runs.watch import OVERLAP, RunWatch
from tests.evaluator.fakes import FakeOpenRuns, FakeRuns, recording
from tests.evaluator.ledgers import START, LedgerHere
from tests.ledger.making import deploy_maker


async def nothing() -> None: ...


LATER = START + timedelta(seconds=1)
SOURCE, TABLE = Asset("s3://lake/source"), Asset("s3://lake/table")


def launched(ledger: LedgerHere, number: int) -> list[UUID]:
    ledger.deploy("report/daily", Asset("a"))
    return [launch(ledger, each) for each in ledger.record(*(recording("a") for _ in range(number)))]


def launch(ledger: LedgerHere, decision: UUID) -> UUID:
    run = uuid4()
    ledger.writer.decisions.launched(decision, run, ledger.now())
    return run


def keep_table(ledger: LedgerHere, schedule: object = None) -> UUID:
    """Deploy a flow whose runs are compared, and return the id of its deployment."""
    deploy_maker(ledger.ledger, Eager(TABLE), [Asset("s3://lake/board")], [TABLE], "board/daily", at=START)
    return deploy_maker(ledger.ledger, schedule, [TABLE], [SOURCE], "table/daily", at=START).deployment_id


def compared(ledger: LedgerHere, number: int) -> list[UUID]:
    names = [f"table{each}/daily" for each in range(number)]
    makers = [
        deploy_maker(ledger.ledger, Eager(SOURCE), [Asset(f"s3://lake/{name}")], [SOURCE], name, at=START).id
        for name in names
    ]
    ledger.record(recording(SOURCE.uri))
    return [launch(ledger, each.id) for each in ledger.decisions.values() if each.consumer in makers]


def watching(ledger: LedgerHere, open_runs: FakeOpenRuns | None = None, **given: Any) -> RunWatch:
    known: dict[str, Any] = {"runs": FakeRuns(), "health": Health(), "on_ended": lambda: None, "read_logs": nothing}
    known |= {"now": lambda: START} | given
    return RunWatch(ledger, open_runs=open_runs or FakeOpenRuns(), **known)


async def test_the_end_of_a_run_is_recorded_once(ledger: LedgerHere) -> None:
    ended: list[int] = []
    (run,) = launched(ledger, 1)
    watch = watching(ledger, on_ended=lambda: ended.append(1))
    await watch.end(uuid4(), RunEnd("Completed", "completed"))
    assert (ledger.states, ended) == ({}, [])
    await watch.end(run, RunEnd("Skipped", "completed"))
    await watch.end(run, RunEnd("Skipped", "completed"))
    assert ledger.states == {run: "Skipped"}
    assert ended == [1]


@pytest.mark.rule("8.16")
async def test_the_updates_of_a_compared_run_are_recorded_before_its_end(ledger: LedgerHere) -> None:
    (other,), (run,) = launched(ledger, 1), compared(ledger, 1)
    ended_when_read: list[dict[UUID, str]] = []

    async def read_logs() -> None:
        ended_when_read.append(ledger.states)

    watch = watching(ledger, read_logs=read_logs)
    await watch.end(other, RunEnd("Completed", "completed"))
    assert ended_when_read == []
    await watch.end(run, RunEnd("Completed", "completed"))
    assert ended_when_read == [{other: "Completed"}]
    assert ledger.states[run] == "Completed"


def by_hand(deployment: UUID) -> RunGoingOn:
    return RunGoingOn(uuid4(), deployment, None, None, START, by_time=False)


def going_on(ledger: LedgerHere) -> list[UUID]:
    return list(ledger.reader.freshness.other_runs(10))


async def test_8_6_a_run_that_somebody_starts_is_recorded_if_what_it_makes_is_compared(ledger: LedgerHere) -> None:
    deployment = keep_table(ledger)
    run, other = by_hand(deployment), by_hand(uuid4())
    watch = watching(ledger, FakeOpenRuns(run, other))
    await watch.follow(RunChange(run.run, run.deployment))
    await watch.follow(RunChange(other.run, other.deployment))
    await watch.follow(RunChange(uuid4(), deployment))
    await watch.follow(RunChange(uuid4(), None))
    assert going_on(ledger) == [run.run]


async def test_8_6_runs_that_go_on_are_found_by_asking(ledger: LedgerHere) -> None:
    run, other = by_hand(uuid4()), by_hand(uuid4())
    await watching(ledger, FakeOpenRuns(run, other)).look()
    assert going_on(ledger) == []
    run = by_hand(keep_table(ledger))
    await watching(ledger, FakeOpenRuns(run, other)).look()
    assert going_on(ledger) == [run.run]


async def test_8_6_the_start_of_a_run_is_recorded_when_prefect_tells_of_it(ledger: LedgerHere) -> None:
    (run,) = compared(ledger, 1)
    (deployment,) = {each.consumer.deployment_id for each in ledger.reader.consumers.all()}
    ledger.now = lambda: LATER
    watch = watching(ledger)
    await watch.follow(RunChange(run, uuid4(), began=START))
    await watch.follow(RunChange(run, deployment))
    assert ledger.reader.freshness.lacks_start(run)
    await watch.follow(RunChange(run, deployment, began=LATER))
    assert not ledger.reader.freshness.lacks_start(run)


async def test_8_6_prefect_is_asked_at_the_end_for_a_start_that_was_not_heard(ledger: LedgerHere) -> None:
    (other,), (run, heard) = launched(ledger, 1), compared(ledger, 2)
    ledger.writer.runs.began(heard, LATER, LATER)
    known = FakeOpenRuns(*(by_hand(uuid4())._replace(run=each, began=LATER) for each in (other, run, heard)))
    ledger.now = lambda: LATER
    watch = watching(ledger, known)
    for each in (other, run, heard):
        await watch.end(each, RunEnd("Completed", "completed"))
    assert known.asked == [run]


async def test_4_7_a_run_that_leaves_its_final_state_goes_on_again(ledger: LedgerHere) -> None:
    (run,) = launched(ledger, 1)
    watch = watching(ledger)
    await watch.end(run, RunEnd("Failed", "failed", START))
    await watch.follow(RunChange(run, None, retried=LATER))
    assert ledger.states == {}


async def test_4_7_what_prefect_did_not_send_is_looked_for_once_it_sends_again(ledger: LedgerHere) -> None:
    now = [START]
    run, other = launched(ledger, 2)
    known = FakeOpenRuns()
    watch = watching(ledger, known, now=lambda: now[0])
    await watch.end(run, RunEnd("Failed", "failed", START))
    known.newest = dict.fromkeys((run, other), LATER)

    async def changes() -> AsyncIterator[RunChange]:
        now[0] += 2 * OVERLAP
        await watch.look()
        yield RunChange(uuid4(), None)

    await watch.look()
    assert ledger.states == {}
    now[0] += OVERLAP
    await watch.listen(changes())
    await watch.look()
    assert known.looked_since == [None, START - OVERLAP, None, START + 2 * OVERLAP]


async def test_4_7_a_final_state_that_somebody_set_meanwhile_in_place_of_another_counts(ledger: LedgerHere) -> None:
    (run,) = launched(ledger, 1)
    known = FakeOpenRuns()
    watch = watching(ledger, known)
    await watch.end(run, RunEnd("Failed", "failed", START))
    known.anew = [RunChange(run, None, end=RunEnd("Completed", "completed", LATER))]
    await watch.look()
    assert ledger.states == {run: "Failed"}, "this evaluator has heard of nothing before"
    await watch.look()
    assert ledger.states == {run: "Completed"}
