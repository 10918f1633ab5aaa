"""The lease: one evaluator runs at a time."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from assetflow.core.rules.fold import record_and_pass
from assetflow.errors import EvaluatorRunning, LeaseLost, LedgerError, LedgerVersion
from assetflow.ledger import Holder, Ledger, Writer
from assetflow.ledger.lease import is_running
from assetflow.ledger.migrations import VERSION
from tests.environment.waiting import until
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, declared, update

ONE, TWO, FAR = (Holder(uuid4(), host, pid) for host, pid in (("here", 11), ("here", 22), ("there", 33)))


def alive(_pid: int) -> bool:
    return True


def dead(_pid: int) -> bool:
    return False


def test_second_evaluator_is_told_who_runs(ledger: Ledger) -> None:
    ledger.writer.lease.acquire(ONE, NOW)
    for other in (TWO, FAR):
        with pytest.raises(EvaluatorRunning, match="process 11 on here, since 2026-01-01 12:00:00 UTC"):
            ledger.writer.lease.acquire(other, NOW, is_alive=alive)
    lease = ledger.reader.lease()
    assert lease is not None
    assert lease.holder == ONE


def test_lease_of_a_dead_process_of_this_host_is_taken_at_once(sqlite_ledger: Ledger) -> None:
    sqlite_ledger.writer.lease.acquire(ONE, NOW)
    with pytest.raises(EvaluatorRunning):
        sqlite_ledger.writer.lease.acquire(FAR, NOW, is_alive=dead)
    assert sqlite_ledger.writer.lease.acquire(TWO, NOW, is_alive=dead).holder == TWO


@pytest.mark.postgres
def test_on_postgres_a_process_that_is_not_seen_may_live_in_another_container(new_postgres: NewLedger) -> None:
    ledger = new_postgres()
    ledger.writer.lease.acquire(ONE, NOW)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.lease.acquire(TWO, NOW, is_alive=dead)


def test_lease_of_another_host_is_taken_when_it_expires_after_its_last_renewal(ledger: Ledger) -> None:
    ledger.writer.lease.acquire(ONE, NOW)
    ledger.writer.lease.renew(ONE, NOW + timedelta(seconds=3))
    with pytest.raises(EvaluatorRunning):
        ledger.writer.lease.acquire(FAR, NOW + timedelta(seconds=6.9))
    assert ledger.writer.lease.acquire(FAR, NOW + timedelta(seconds=7)).holder == FAR
    with pytest.raises(LeaseLost, match="process 33 on there"):
        ledger.writer.lease.renew(ONE, NOW + timedelta(seconds=9))


def test_released_lease_is_free(ledger: Ledger) -> None:
    ledger.writer.lease.acquire(ONE, NOW)
    ledger.writer.lease.release(TWO)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.lease.acquire(TWO, NOW, is_alive=alive)
    ledger.writer.lease.release(ONE)
    ledger.writer.lease.acquire(TWO, NOW, is_alive=alive)
    with pytest.raises(LeaseLost):
        ledger.writer.lease.renew(ONE, NOW)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a process has ended unasked")
def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_running(child.pid)
        child.kill()
        until(lambda: not is_running(child.pid))
        os.kill(child.pid, 0)


@pytest.fixture
def successor(ledger: Ledger) -> Iterator[Ledger]:
    with Ledger.open(ledger.place) as other:
        yield other


WRITES: dict[str, Callable[[Writer], object]] = {
    "record": lambda writer: writer.events.record([update(A)], NOW),
    "deploy": lambda writer: writer.consumers.deploy("flow/one", uuid4(), None, declared(A), False, False, NOW),
    "refuse": lambda writer: writer.events.refuse({}, "reason", None, "test", uuid4(), NOW),
    "set_cursor": lambda writer: writer.set_cursor("events", "2026"),
    "attempt_failed": lambda writer: writer.decisions.attempt_failed(uuid4(), "error"),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("released", [False, True])
def test_an_evaluator_that_lost_the_lease_writes_nothing(
    ledger: Ledger, successor: Ledger, write: str, released: bool
) -> None:
    ledger.writer.lease.acquire(ONE, NOW)
    WRITES[write](ledger.writer)
    before = ledger.reader.feed.end(), len(ledger.reader.events.refused())
    successor.writer.lease.acquire(FAR, NOW + timedelta(seconds=4))
    if released:
        successor.writer.lease.release(FAR)
    successor.writer.set_cursor("events", "of the successor")
    with pytest.raises(LeaseLost, match="nobody evaluates now" if released else "process 33 on there"):
        WRITES[write](ledger.writer)
    assert successor.reader.cursor("events") == "of the successor"
    assert (successor.reader.feed.end(), len(successor.reader.events.refused())) == before


@pytest.mark.postgres
def test_an_evaluator_that_hangs_in_a_transaction_blocks_nobody(new_postgres: NewLedger, postgres_url: str) -> None:
    new_postgres()
    with Ledger.open(postgres_url, evaluator=ONE.id) as frozen, Ledger.open(postgres_url) as successor:
        frozen.writer.lease.acquire(ONE, NOW)

        def stand_still() -> None:
            with frozen.transaction(NOW) as unit:
                record_and_pass(unit.state, update(A), NOW)
                unit.write()
                # It has the locks, and says nothing any more; the other one has its lease within no time.
                successor.writer.lease.acquire(FAR, NOW + timedelta(seconds=4))

        with pytest.raises(LedgerError, match="does not answer"):
            stand_still()
        with pytest.raises(LeaseLost):
            frozen.writer.events.record([update(A)], NOW)
        assert successor.reader.events.count() == 0


@pytest.mark.postgres
def test_renewing_does_not_wait_for_a_long_transaction(new_postgres: NewLedger) -> None:
    ledger = new_postgres()
    ledger.writer.lease.acquire(ONE, NOW)
    with ledger.transaction(NOW), ThreadPoolExecutor(1) as beside:
        beside.submit(ledger.writer.lease.renew, ONE, NOW + timedelta(seconds=3)).result(5)
    lease = ledger.reader.lease()
    assert lease is not None
    assert lease.renewed == NOW + timedelta(seconds=3)


def test_a_program_that_waited_while_the_tables_changed_does_not_evaluate(ledger: Ledger) -> None:
    with ledger.writes() as connection:
        connection.execute(text("UPDATE ledger_version SET version_num = '9999'"))
    with pytest.raises(LedgerVersion, match="9999"):
        ledger.writer.lease.acquire(ONE, NOW)
    with ledger.writes() as connection:
        connection.execute(text(f"UPDATE ledger_version SET version_num = '{VERSION}'"))
    assert ledger.reader.lease() is None
