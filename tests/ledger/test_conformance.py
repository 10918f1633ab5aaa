"""The conformance scenarios, with each question that the fold asks put to the ledger's book and the book in memory.

Every few calls the ledger's book is written to its tables and a new one goes on, so that what is read comes from rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, update

from assetflow.core.book import Pending
from assetflow.core.consumers import Consumer, Decision, Receipt
from assetflow.core.events import AssetEvent
from assetflow.core.memory_book import MemoryBook
from assetflow.core.simulation import run as simulation
from assetflow.core.simulation.world import World
from assetflow.ledger import Ledger, LedgerBook
from assetflow.ledger.tables import DECISION
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW

CASES = Path(__file__).parents[1] / "conformance" / "cases"
FILES = sorted(path for path in CASES.glob("*.json") if not path.name.endswith(".expected.json"))
FIRST = 25


class Undo(Exception):
    """Takes the scenario's rows back."""


class TwoBooks(MemoryBook):
    """Gives the answers of the book in memory, after comparing them with those of the ledger's book."""

    def __init__(self, connection: Connection, turn: int) -> None:
        super().__init__()
        self._connection = connection
        self._turn = turn
        self._calls = 0
        self._ledger_book = LedgerBook(connection, NOW)

    def _twin(self) -> LedgerBook:
        self._calls += 1
        if self._calls % self._turn == 0:
            self._renew()
        return self._ledger_book

    def _renew(self) -> None:
        self._ledger_book.flush()
        self._ledger_book = LedgerBook(self._connection, NOW)

    def end_runs(self, consumer: int) -> None:
        super().end_runs(consumer)
        self._renew()
        self._connection.execute(update(DECISION).where(DECISION.c.consumer == consumer).values(ended=NOW))

    def append(self, event: AssetEvent, *rest: Any) -> AssetEvent:
        theirs = self._twin().append(event, *rest)
        mine = super().append(event, *rest)
        assert theirs.sequence == mine.sequence
        return mine

    def pending(self, consumer: int, target_key: str | None) -> Pending:
        theirs = self._twin().pending(consumer, target_key)
        mine = super().pending(consumer, target_key)
        assert {uri: set(keys) for uri, keys in theirs.items()} == {uri: set(keys) for uri, keys in mine.items()}
        return mine

    def queued(self, consumer: int, target_key: str | None) -> Sequence[AssetEvent]:
        theirs = self._twin().queued(consumer, target_key)
        mine = super().queued(consumer, target_key)
        assert [(e, e.asset.name, e.extra, e.aliases) for e in theirs] == [
            (e, e.asset.name, e.extra, e.aliases) for e in mine
        ]
        return mine


def _compared(name: str, form: Callable[[Any], Any]) -> None:
    of_memory = getattr(MemoryBook, name)

    def method(self: TwoBooks, *arguments: Any) -> Any:
        theirs = getattr(self._twin(), name)(*arguments)
        mine = of_memory(self, *arguments)
        assert form(theirs) == form(mine), name
        return mine

    setattr(TwoBooks, name, method)


def _by_key(receipts: Collection[Receipt]) -> Mapping[str | None, Receipt]:
    return {receipt.target_key: receipt for receipt in receipts}


def _as_is(value: Any) -> Any:
    return value


for _name, _form in (
    ("owner_of", _as_is),
    ("names_of", set),
    ("declare", _as_is),
    ("aliases_of", set),
    ("link", _as_is),
    ("new_events", list[AssetEvent]),
    ("wanting", list[Consumer]),
    ("save", _as_is),
    ("forget", _as_is),
    ("target_keys", set),
    ("receipts_of", _by_key),
    ("write", _as_is),
    ("unqueue", _as_is),
    ("is_busy", _as_is),
):
    _compared(_name, _form)


def decide(self: TwoBooks, decision: Decision) -> None:
    # The memory's own `decide` calls `write`, which would reach the ledger's book a second time.
    self._twin().decide(decision)
    self.decisions.append(decision)
    self.running[decision.consumer, decision.target_key].add(decision.id)
    for event in decision.events:
        assert event.sequence is not None
        receipt = Receipt(event.sequence, event.uri, decision.consumer, "consumed", decision.target_key, decision.id)
        MemoryBook.write(self, event, receipt)


TwoBooks.decide = decide


def run_on(ledger: Ledger, scenario: Any, turn: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    answers: list[Any] = []

    def go() -> None:
        with ledger.writes() as connection:
            monkeypatch.setattr(simulation, "World", lambda start: World(start, book=TwoBooks(connection, turn)))
            answers.append(simulation.simulate(scenario))
            raise Undo

    with pytest.raises(Undo):
        go()
    return answers[0]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_scenarios_on_the_ledger(file: Path, sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = json.loads(file.read_text())[:FIRST]
    expected = json.loads(file.with_suffix(".expected.json").read_text())
    for number, scenario in enumerate(scenarios):
        answer = run_on(sqlite_ledger, scenario, 1 + number % 7, monkeypatch)
        assert answer["runs"] == expected[number]["runs"], scenario["name"]


@pytest.mark.postgres
@pytest.mark.parametrize("first", [1, pytest.param(8, marks=pytest.mark.long)])
def test_scenarios_on_postgres(first: int, new_postgres: NewLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_postgres()
    for file in FILES:
        expected = json.loads(file.with_suffix(".expected.json").read_text())
        for number, scenario in enumerate(json.loads(file.read_text())[:first]):
            answer = run_on(ledger, scenario, 3 + number, monkeypatch)
            assert answer["runs"] == expected[number]["runs"], scenario["name"]
