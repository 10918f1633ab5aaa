"""What a process remembers is compared well enough: the comparison is seen to fail with a broken copy of the code."""

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
from assetflow.ledger.sql.engine import notify
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.write.store import Store, UnitOfWork
from tests.ledger.conftest import NewLedger
from tests.ledger.fold.test_processes import BEE, BOARD, CORE, OTHER_BEE, RAW, Remembered, compare

# Tables that differ, or a transaction that cannot be written.
SEEN = (AssertionError, AssetflowError, SQLAlchemyError)
Break = Callable[[pytest.MonkeyPatch], None]


def update(asset: Asset) -> tuple[Any, ...]:
    return ("update", asset, None, None)


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


# Each with steps that a search has to come upon to see it. Processes begin with Eager flows from raw to core and from
# core to board.
BROKEN: dict[Break, list[tuple[Any, ...]]] = {
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
    names_learn_nothing: [
        (("deploy", "f/three", 8), 0, None),
        (update(BOARD), 0, None),
        (("record", [(1, 0, [(1, BOARD, None, ("x",))])]), 1, None),
        (update(BOARD), 0, None),
        # A name that had no owner when a process asked for it.
        (("deploy", "f/three", 11), 0, None),
        (("record", [(2, 0, [(2, BEE, None, ())])]), 1, None),
        (("record", [(3, 0, [(3, OTHER_BEE, None, ()), (4, Asset(BEE.uri), None, ())])]), 0, None),
    ],
    what_was_rolled_back_is_remembered: [
        (("deploy", "f/three", 4), 0, None),
        (("lose", [(1, 0, [(1, RAW, None, ())])]), 0, None),
        (update(CORE), 0, None),
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


@pytest.mark.parametrize("broken", BROKEN, ids=name)
def test_the_comparison_of_processes_sees(
    broken: Break, new_sqlite: NewLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises(SEEN):
        compare(new_sqlite, BROKEN[broken], Remembered())


@pytest.mark.parametrize("steps", BROKEN.values(), ids=map(name, BROKEN))
def test_the_comparison_sees_nothing_in_the_code_as_it_is(steps: list[Any], new_sqlite: NewLedger) -> None:
    compare(new_sqlite, steps, Remembered())
