"""A worker notes and signs what it takes, so that the runs of a dead worker are told from those of living ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest
from prefect import flow
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Cancelling, Crashed, Pending, Running, Scheduled

from assetflow.worker import taken_runs
from assetflow.worker.client import BEGAN
from assetflow.worker.taken_runs import TakenRuns, note_what_is_taken, see_to_abandoned_runs

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]


@flow
def unnamed() -> None:
    """A flow that nobody runs."""


@pytest.fixture
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has begun nowhere is abandoned at once."""
    monkeypatch.setattr(taken_runs, "SECONDS_TO_BEGIN", 0.0)


@asynccontextmanager
async def a_worker(folder: Path, name: str) -> AsyncIterator[tuple[TakenRuns, PrefectClient]]:
    """The notes and the client of a worker. Its notes are left when it ends, as those of a killed one are."""
    async with get_client() as client:
        with TakenRuns(folder, name) as taken:
            note_what_is_taken(client, taken)
            yield taken, client


async def a_run() -> UUID:
    async with get_client() as client:
        return (await client.create_flow_run(unnamed, state=Scheduled())).id


async def state_of(client: PrefectClient, run: UUID) -> State:
    state = (await client.read_flow_run(run)).state
    assert state is not None
    return state


def notes(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*/*"))


async def test_a_run_is_noted_and_signed_by_the_worker_that_gets_it(tmp_path: Path) -> None:
    run = await a_run()
    async with a_worker(tmp_path, "a") as (mine, one), a_worker(tmp_path, "b") as (_, other):
        assert (await one.set_flow_run_state(run, Pending())).status is SetStateStatus.ACCEPT
        assert (await other.set_flow_run_state(run, Pending())).status is SetStateStatus.ABORT
        assert (await state_of(one, run)).message == mine.signature
        assert notes(tmp_path) == [str(run)]


@pytest.mark.usefixtures("nobody_waits")
@pytest.mark.parametrize(
    ("name", "states", "expected"),
    [
        ("Pending", [], "SCHEDULED"),
        ("Submitting", [Pending(name="Submitting")], "SCHEDULED"),
        ("Running", [Running()], "CRASHED"),
        ("Cancelling", [Running(), Cancelling()], "CANCELLED"),
        ("Crashed", [Running(), Crashed()], "CRASHED"),
    ],
)
async def test_the_run_of_a_dead_worker_is_seen_to(
    tmp_path: Path, name: str, states: list[State], expected: str
) -> None:
    run = await a_run()
    async with a_worker(tmp_path, "living") as (living, client):
        async with a_worker(tmp_path, "dead") as (dying, its):
            for state in (Pending(), *states):
                await its.set_flow_run_state(run, state)
            if name != "Pending":
                dying.note(run).write_bytes(BEGAN)
        await see_to_abandoned_runs(living, client)
        assert (await state_of(client, run)).type.value == expected
    assert notes(tmp_path) == []


@pytest.mark.usefixtures("nobody_waits")
@pytest.mark.parametrize("name", ["living", "dead"])
async def test_a_run_that_another_worker_has_is_left_to_it_however_long_it_takes(tmp_path: Path, name: str) -> None:
    """The dead worker has noted it, and a living one has it, which may have the dead one's name."""
    run = await a_run()
    async with a_worker(tmp_path, name) as (living, client):
        async with a_worker(tmp_path, "dead") as (dying, _):
            await client.set_flow_run_state(run, Pending())
            dying.note(run)
        await see_to_abandoned_runs(living, client)
        assert (await state_of(client, run)).is_pending()
    # The living worker's note stays.
    assert notes(tmp_path) == [str(run)]


@pytest.mark.usefixtures("nobody_waits")
async def test_a_run_that_was_started_anew_is_its_new_workers(tmp_path: Path) -> None:
    run = await a_run()
    async with a_worker(tmp_path, "living") as (living, client):
        async with a_worker(tmp_path, "dead") as (dying, its):
            await its.set_flow_run_state(run, Pending())
            dying.note(run).write_bytes(BEGAN)
        await client.set_flow_run_state(run, Scheduled(), force=True)
        for state in (Pending(), Running()):
            await client.set_flow_run_state(run, state)
        await see_to_abandoned_runs(living, client)
        assert (await state_of(client, run)).is_running()
