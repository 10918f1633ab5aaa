"""The scenarios of chapter 8 on the ledger's tables: each pass begins with rows only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, text

from assetflow.core.freshness.records import Backfill
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.rules.state import State
from assetflow.core.simulate import run as simulation
from assetflow.core.simulate.world import World
from assetflow.core.values.consumers import Decision
from assetflow.ledger import Ledger
from assetflow.ledger.fold.freshness_source import FreshnessTables
from assetflow.ledger.fold.freshness_writing import write_freshness
from tests.conformance.comparison import differences
from tests.ledger.conftest import NewLedger

CASES = Path(__file__).parents[2] / "conformance" / "freshness"
FILES = sorted(path for path in CASES.glob("*.json") if ".expected" not in path.name)


class Undo(Exception):
    """Rolls the rows of the scenario back."""


class StateOnTables(State):
    """A state in memory whose freshness is that of a ledger."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._told = 0
        self._written: dict[int, Backfill] = {}
        tables = FreshnessTables(connection)
        resolve, tokens_of = self.freshness.resolve, self.names.tokens_of
        self.freshness = FreshnessState(tables, resolve, tokens_of, self.freshness.place)

    def write_book(self) -> None:
        """Write the changes of freshness, and let it forget the rest."""
        changes = self.freshness.changes
        told, backfills, steps = changes.policy_changes, changes.backfills, changes.steps
        changes.backfills = {number: each for number, each in backfills.items() if self._written.get(number) != each}
        self._written |= changes.backfills
        changes.policy_changes = told[self._told :]
        write_freshness(self._connection, changes)
        self._told = len(told)
        changes.begin()
        # The answer tells of all changes of state, and of all backfills.
        changes.policy_changes, changes.backfills, changes.steps = told, backfills, steps
        self.freshness.renew()


def run_on(ledger: Ledger, scenario: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    answers: list[Any] = []
    decide = simulation.keep_up_to_date

    def decide_and_write(world: World, decided: Sequence[Decision] = (), *, recorded: bool) -> None:
        decide(world, decided, recorded=recorded)
        cast("StateOnTables", world.state).write_book()

    def go() -> None:
        with ledger.writes() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(text("PRAGMA defer_foreign_keys = ON"))
            else:
                connection.execute(text("SET session_replication_role = replica"))
            state = StateOnTables(connection)
            monkeypatch.setattr(simulation, "World", lambda start: World(start, state=state))
            monkeypatch.setattr(simulation, "keep_up_to_date", decide_and_write)
            answers.append(simulation.simulate(scenario))
            raise Undo

    try:
        with pytest.raises(Undo):
            go()
    finally:
        monkeypatch.setattr(simulation, "keep_up_to_date", decide)
    return answers[0]


def check(file: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, first: int | None = None) -> None:
    expected = json.loads(file.with_suffix(".expected.json").read_text())
    for number, scenario in enumerate(json.loads(file.read_text())[:first]):
        answer = run_on(ledger, scenario, monkeypatch)
        assert not differences(expected[number], answer, receipts=False), scenario["name"]


@pytest.mark.parametrize("first", [5, pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_scenarios_on_the_tables(
    file: Path, first: int | None, sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(file, sqlite_ledger, monkeypatch, first)


@pytest.mark.postgres
def test_scenarios_on_postgres(new_postgres: NewLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_postgres()
    for file in FILES:
        check(file, ledger, monkeypatch, first=2)
