"""The conformance scenarios on a ledger: every few calls its state is written, so that reads come from rows."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, select, text, update

from assetflow.core.freshness.records import Backfill
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.rules.state import State
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.simulate import run as simulation
from assetflow.core.simulate.world import World
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.ledger import Ledger, UnitOfWork
from assetflow.ledger.fold.freshness_source import FreshnessTables
from assetflow.ledger.fold.freshness_writing import write_freshness
from assetflow.ledger.sql.tables import DECISION, NO_CONSUMER, RECEIPT
from tests.conformance.comparison import differences
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW

CASES = Path(__file__).parents[2] / "conformance"
FILES = sorted(
    path for part in ("cases", "time") for path in (CASES / part).glob("*.json") if ".expected" not in path.name
)
FRESHNESS_FILES = sorted(path for path in (CASES / "freshness").glob("*.json") if ".expected" not in path.name)
# Nothing is decided later than at its instant.
AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)


class Undo(Exception):
    """Rolls the rows of the scenario back."""


class Compared:
    """A part of a state in memory, compared at each read with the same part of the ledger's state."""

    def __init__(self, mine: Any, theirs: Callable[[], Any]) -> None:
        self._mine, self._theirs = mine, theirs

    def __getattr__(self, name: str) -> Any:
        def compared(*arguments: Any) -> Any:
            theirs = _form(getattr(self._theirs(), name)(*arguments))
            mine = getattr(self._mine, name)(*arguments)
            assert theirs == _form(mine), name
            return mine

        return compared


class TwoStates:
    def __init__(self, connection: Connection, turn: int) -> None:
        self._connection = connection
        self._turn = turn
        self._calls = 0
        self._unit = UnitOfWork(connection, AT_ONCE)
        self._mine = State()
        self.changes = self._mine.changes
        # The tables have none of it.
        self.freshness = self._mine.freshness
        for part in ("names", "events", "consumers", "queues", "receipts", "clocks"):
            setattr(self, part, Compared(getattr(self._mine, part), lambda part=part: getattr(self._twin(), part)))
        self.decisions = self
        whole = Compared(self._mine, self._twin)
        self.declare, self.is_declared = whole.declare, self._mine.is_declared
        self.append, self.write, self.unqueue, self.decide = whole.append, whole.write, whole.unqueue, whole.decide

    def all_queued(self, consumer: int) -> Any:
        mine = list(self._mine.all_queued(consumer))
        assert list(self._twin().all_queued(consumer)) == mine
        return mine

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        mine = self._mine.decisions.is_busy(consumer, target_key)
        assert self._twin().decisions.is_busy(consumer, target_key) == mine
        return mine

    def end_runs(self, consumer: int) -> None:
        self._mine.decisions.end_runs(consumer)
        self._renew()
        self._connection.execute(update(DECISION).where(DECISION.c.consumer == consumer).values(ended=NOW))

    def check_receipts(self) -> None:
        """Check that the table has exactly the receipts that the memory has."""
        self._renew()
        columns = (RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key, RECEIPT.c.status)
        mine = {(r.event, r.consumer or NO_CONSUMER, r.target_key, r.status) for r in self._mine.changes.all_receipts()}
        assert {tuple(row) for row in self._connection.execute(select(*columns))} == mine

    def _twin(self) -> State:
        self._calls += 1
        if self._calls % self._turn == 0:
            self._renew()
        return self._unit.state

    def _renew(self) -> None:
        self._unit.write()
        self._unit = UnitOfWork(self._connection, AT_ONCE)


def _form(value: Any) -> Any:
    """Return a result in a form in which equal means that two results mean the same."""
    if isinstance(value, AssetEvent):
        return value.sequence, value.id, value.asset.name, value.extra, value.aliases
    if isinstance(value, Mapping):
        return {uri: set(keys) for uri, keys in value.items()}
    if isinstance(value, Receipt | str | Consumer | int | datetime | ConsumerClock | QueueClock | None):
        return value
    found = [_form(each) for each in value]
    return found if not found or isinstance(found[0], tuple | Consumer) else sorted(found, key=repr)


def run_on(ledger: Ledger, scenario: Any, turn: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    answers: list[Any] = []

    def go() -> None:
        with ledger.writes() as connection:
            states = TwoStates(connection, turn)
            monkeypatch.setattr(simulation, "World", lambda start: World(start, state=cast("State", states)))
            answers.append(simulation.simulate(scenario))
            states.check_receipts()
            raise Undo

    with pytest.raises(Undo):
        go()
    return answers[0]


def parts(files: list[Path]) -> list[Any]:
    """Return each file with its first five scenarios, and with the next 25 for long tests."""
    found: list[Any] = []
    for file in files:
        name = f"{file.parent.name} {file.stem}"
        found.append(pytest.param(file, slice(5), id=name))
        # Only drawn scenarios are more than 30 in a file. They are about rules: tests/conformance has all, in memory.
        if len(json.loads(file.read_text())) > 5:
            found.append(pytest.param(file, slice(5, 30), id=f"{name} from 5", marks=pytest.mark.long))
    return found


@pytest.mark.parametrize(("file", "part"), parts(FILES))
def test_scenarios_on_the_ledger(
    file: Path, part: slice, sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios = list(enumerate(json.loads(file.read_text())))
    expected = json.loads(file.with_suffix(".expected.json").read_text())
    for number, scenario in scenarios[part]:
        answer = run_on(sqlite_ledger, scenario, 1 + number % 7, monkeypatch)
        assert answer["runs"] == expected[number]["runs"], scenario["name"]
        assert answer.get("missed") == expected[number].get("missed"), scenario["name"]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "part", [slice(1), pytest.param(slice(1, 4), marks=[pytest.mark.long, pytest.mark.timeout(600)])], ids=str
)
def test_scenarios_on_postgres(part: slice, new_postgres: NewLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_postgres()
    for file in FILES:
        expected = json.loads(file.with_suffix(".expected.json").read_text())
        for number, scenario in list(enumerate(json.loads(file.read_text())))[part]:
            answer = run_on(ledger, scenario, 3 + number, monkeypatch)
            assert answer["runs"] == expected[number]["runs"], scenario["name"]


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


def run_on_tables(ledger: Ledger, scenario: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
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


def check(file: Path, part: slice, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = json.loads(file.with_suffix(".expected.json").read_text())
    for number, scenario in list(enumerate(json.loads(file.read_text())))[part]:
        answer = run_on_tables(ledger, scenario, monkeypatch)
        assert not differences(expected[number], answer, receipts=False), scenario["name"]


@pytest.mark.parametrize(("file", "part"), parts(FRESHNESS_FILES))
def test_scenarios_on_the_tables(
    file: Path, part: slice, sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(file, part, sqlite_ledger, monkeypatch)


@pytest.mark.postgres
def test_scenarios_of_freshness_on_postgres(new_postgres: NewLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_postgres()
    for file in FRESHNESS_FILES:
        check(file, slice(2), ledger, monkeypatch)
