"""A change that is found before Prefect's logs are read is recorded first, and decides nothing as of before it. 9.6."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from assetflow.core.values.timing import Intake
from assetflow.evaluator.ledger_thread import READ_LATELY, LedgerThread
from tests.evaluator.fakes import Clock
from tests.evaluator.ledgers import START
from tests.ledger.making import A, deploy, update

HOUR = timedelta(hours=1)


async def pause(thread: LedgerThread) -> None:
    """Record that consumer 1 is paused, as the registry does when it finds that."""
    given = {"paused": True, "now": thread.now(), "late": thread.is_late}
    await thread.call(thread.writer.consumers.switch, 1, **given)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def thread(tmp_path: Path, clock: Clock) -> AsyncIterator[LedgerThread]:
    """A ledger whose consumer waits for quiet, an hour long, with an update of noon."""
    async with LedgerThread(tmp_path / "ledger.db", now=clock) as thread:
        deploy(thread.ledger, A, while_paused="keep", intake=Intake(debounce=HOUR))
        thread.ledger.writer.events.record([update(A)], START)
        yield thread


@pytest.mark.rule("9.6")
async def test_a_switch_that_is_found_at_the_start_decides_nothing(thread: LedgerThread, clock: Clock) -> None:
    clock.now += 3 * HOUR
    await pause(thread)
    assert not thread.ledger.reader.decisions.find()


async def test_a_switch_comes_after_the_instants_before_if_prefect_answers(thread: LedgerThread, clock: Clock) -> None:
    clock.now += 3 * HOUR
    thread.logs_read(clock.now - READ_LATELY)
    await pause(thread)
    assert [each.made for each in thread.ledger.reader.decisions.find()] == [START + HOUR]
