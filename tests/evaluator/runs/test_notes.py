"""Each run of a decision gets one note, after all waiting decisions are launched."""

import asyncio
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest

from assetflow.errors import LedgerLocked, PrefectRefused
from assetflow.evaluator.health import keep_going
from assetflow.evaluator.runs import watch as notes_module
from assetflow.evaluator.runs.launch import Launch
from assetflow.evaluator.runs.watch import NoteWriter
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import FakeBoard
from tests.evaluator.ledgers import LedgerHere
from tests.evaluator.runs.test_launch import Pad


class Desk(Pad):
    """A note writer beside a launcher, on a ledger and a Prefect in memory."""

    def __init__(self, ledger: LedgerHere) -> None:
        super().__init__(ledger)
        self.board = FakeBoard()
        self.notes = NoteWriter(self.ledger, self.board, self.health, self.launcher.at_rest)

    def _tell(self, launch: Launch, run: UUID) -> None:
        super()._tell(launch, run)
        self.notes.wake()

    @property
    def noted(self) -> list[UUID]:
        missing = {each.id for each in self.ledger.reader.decisions.without_note()}
        return [each for each in self.ledger.runs if each not in missing]

    def launch(self) -> None:
        self._start("launching", self.launcher.run)

    def write(self) -> None:
        self._start("notes", self.notes.run)

    def _start(self, name: str, loop: Callable[[], object]) -> None:
        self.tasks.append(asyncio.create_task(keep_going(name, loop, self.health)))  # pyright: ignore[reportArgumentType]


@pytest.fixture
async def desk(ledger: LedgerHere, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(notes_module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr("assetflow.evaluator.health.FIRST_PAUSE", 0.01)
    desk = Desk(ledger)
    yield desk
    await cancel(*desk.tasks)


async def test_an_existing_note_is_not_written_again(desk: Desk) -> None:
    (decision,) = desk.decide(1)
    desk.ledger.fails["noted"] = [LedgerLocked("held")]
    desk.launch()
    desk.write()
    await until_async(lambda: desk.noted)
    assert desk.noted == [decision]
    assert len(desk.board.notes) == 1


@pytest.mark.parametrize("error", [PrefectRefused("404"), ValueError("a bug")])
async def test_a_note_that_cannot_be_written_does_not_hold_up_the_others(
    desk: Desk, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    desk.decide(2)
    desk.board.fails = [error]
    desk.launch()
    desk.write()
    await until_async(lambda: len(desk.noted) == 2)
    assert len(desk.board.notes) == 1
    assert str(error) in caplog.text
