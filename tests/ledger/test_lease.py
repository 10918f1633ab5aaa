"""One evaluator at a time (the lease)."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow.errors import EvaluatorRunning
from assetflow.ledger import Holder, Ledger
from tests.ledger.making import NOW

ONE, TWO, FAR = (Holder(uuid4(), host, pid) for host, pid in (("here", 11), ("here", 22), ("there", 33)))


def alive(_pid: int) -> bool:
    return True


def dead(_pid: int) -> bool:
    return False


def test_second_evaluator_is_told_who_runs(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(ONE, NOW)
    for other in (TWO, FAR):
        with pytest.raises(EvaluatorRunning, match="process 11 on here, since 2026-01-01 12:00:00 UTC"):
            ledger.writer.acquire_lease(other, NOW, is_alive=alive)
    lease = ledger.reader.lease()
    assert lease is not None
    assert lease.holder == ONE


def test_lease_of_a_dead_process_of_this_host_is_taken_at_once(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(ONE, NOW)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.acquire_lease(FAR, NOW, is_alive=dead)
    assert ledger.writer.acquire_lease(TWO, NOW, is_alive=dead).holder == TWO


def test_lease_of_another_host_is_taken_when_it_expires(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(ONE, NOW)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.acquire_lease(FAR, NOW + timedelta(seconds=9.9))
    assert ledger.writer.acquire_lease(FAR, NOW + timedelta(seconds=10)).holder == FAR
    with pytest.raises(EvaluatorRunning, match="process 33 on there"):
        ledger.writer.renew_lease(ONE, NOW + timedelta(seconds=11))


def test_renewed_lease_holds_longer(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(ONE, NOW)
    ledger.writer.renew_lease(ONE, NOW + timedelta(seconds=8))
    with pytest.raises(EvaluatorRunning):
        ledger.writer.acquire_lease(FAR, NOW + timedelta(seconds=17))


def test_released_lease_is_free(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(ONE, NOW)
    ledger.writer.release_lease(TWO)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.acquire_lease(TWO, NOW, is_alive=alive)
    ledger.writer.release_lease(ONE)
    ledger.writer.acquire_lease(TWO, NOW, is_alive=alive)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.renew_lease(ONE, NOW)


def test_this_process_is_alive(ledger: Ledger) -> None:
    ledger.writer.acquire_lease(Holder.this_process(uuid4()), NOW)
    with pytest.raises(EvaluatorRunning):
        ledger.writer.acquire_lease(Holder.this_process(uuid4()), NOW)
