"""What a process remembers is compared well enough: the comparisons are seen to fail with a broken copy of the code."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError

from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.rules.state import Changes
from assetflow.core.rules.state.changes import Clocks
from assetflow.core.rules.state.names import Names
from assetflow.core.rules.state.queues import Queues
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError
from assetflow.ledger import Ledger
from assetflow.ledger.sql.engine import notify
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.write.store import Store, UnitOfWork
from tests.ledger.conftest import NewLedger
from tests.ledger.fold.test_processes import CORE, RAW, compare
from tests.ledger.fold.test_twin import BREAKS, A, B, C, Remembered, Step, run, updated
from tests.ledger.making import declared

# Tables that differ, or a transaction that cannot be written.
SEEN = (AssertionError, AssetflowError, SQLAlchemyError)
Break = Callable[[pytest.MonkeyPatch], None]


def update(asset: Asset) -> tuple[Any, ...]:
    return ("update", asset, None, None)


def through_x(asset: Asset, number: int, **given: Any) -> Step:
    return Step(
        ("record", [(number, 0, [{"number": number, "asset": asset, "key": None, "aliases": ("x",)}])]), **given
    )


def others_are_not_told(patch: pytest.MonkeyPatch) -> None:
    """A deploy, a switch or a removal does not let other processes forget."""
    patch.setattr(Changes, "beyond_events", False)


def queues_learn_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Queues, "learn", lambda *_: None)


def names_learn_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Names, "learn", lambda *_: None)


def what_was_rolled_back_is_remembered(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def transaction(self: Any, now: datetime) -> Generator[UnitOfWork]:
        with self._lock, explained(self.place), self._writing.begin() as connection:
            unit = UnitOfWork(connection, now, self._memory)
            self._memory = unit.memory
            yield unit
            unit.write()
            notify(connection)
        self._memory.state.renew()

    patch.setattr(Store, "transaction", transaction)


def clocks_are_kept(patch: pytest.MonkeyPatch) -> None:
    """What another process has changed of a clock is not read again."""
    patch.setattr(Clocks, "renew", lambda _: None)


def freshness_is_kept(patch: pytest.MonkeyPatch) -> None:
    """What another process has changed of versions, runs and targets is not read again."""
    patch.setattr(FreshnessState, "renew", lambda _: None)


# Each with steps that a search has to come upon to see it. Twins begin with consumers of A & B and of X | C.
TWIN: dict[Break, list[Step]] = {
    others_are_not_told: [
        updated(A, 1),
        Step(("change", "f/one", declared(C & B)), writer=1),
        updated(C, 2),
        updated(B, 3),
    ],
    queues_learn_nothing: [updated(A, 1), updated(B, 2, writer=1), updated(A, 3), updated(B, 4)],
    names_learn_nothing: [updated(B, 1), through_x(B, 2, writer=1), updated(B, 3)],
    what_was_rolled_back_is_remembered: [updated(C, 1), updated(A, 2, breaks=BREAKS[2]), updated(B, 3)],
}
# Processes begin with Eager flows from raw to core and from core to board.
PROCESSES: dict[Break, list[tuple[Any, ...]]] = {
    others_are_not_told: [
        (update(RAW), 0, None),
        (("deploy", "f/one", 2), 1, None),
        (update(RAW), 0, None),
        (update(CORE), 0, None),
    ],
    queues_learn_nothing: [
        (("deploy", "f/three", 4), 0, None),
        (update(RAW), 0, None),
        (update(CORE), 1, None),
        (update(RAW), 0, None),
        (update(CORE), 0, None),
    ],
    clocks_are_kept: [
        (("deploy", "f/three", 6), 0, None),
        (update(RAW), 0, None),
        (("let_pass", 3), 1, None),
        (update(RAW), 0, None),
        (("let_pass", 8), 0, None),
    ],
    freshness_is_kept: [
        (update(RAW), 0, None),
        (("end", 0, "completed"), 1, None),
        (update(RAW), 0, None),
        (("end", 0, "completed"), 1, None),
    ],
}


def name(of: Break) -> str:
    return of.__name__


@pytest.mark.parametrize("broken", TWIN, ids=name)
def test_the_twin_sees(broken: Break, sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    with pytest.raises(SEEN):
        run(sqlite_ledger, TWIN[broken], Remembered())


@pytest.mark.parametrize("steps", TWIN.values(), ids=map(name, TWIN))
def test_the_twin_sees_nothing_in_the_code_as_it_is(steps: list[Step], sqlite_ledger: Ledger) -> None:
    run(sqlite_ledger, steps, Remembered())


@pytest.mark.parametrize("broken", PROCESSES, ids=name)
def test_the_comparison_of_processes_sees(
    broken: Break, new_sqlite: NewLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises(SEEN):
        compare(new_sqlite, PROCESSES[broken], Remembered())


@pytest.mark.parametrize("steps", PROCESSES.values(), ids=map(name, PROCESSES))
def test_the_comparison_sees_nothing_in_the_code_as_it_is(steps: list[Any], new_sqlite: NewLedger) -> None:
    compare(new_sqlite, steps, Remembered())
