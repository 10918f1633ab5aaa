"""A real ledger for the evaluator's loops, without a thread and a lease, whose calls fail when a test says so."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID, uuid4

from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import Recording
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger import Ledger
from assetflow.ledger.records import DecisionRecord
from tests.ledger.making import declared

P = ParamSpec("P")
T = TypeVar("T")

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class LedgerHere(LedgerThread):
    """A ledger that is called in the thread of the test.

    Attributes:
        fails: by the name of a function of the ledger, the errors that its next calls raise.
        refuses: returns the error that a call raises, from the function's name and its arguments.
        batches: the recordings of each call of `record` that did not fail.
    """

    def __init__(self, ledger: Ledger, now: Callable[[], datetime] = lambda: START) -> None:
        super().__init__(now=now)
        self.ledger = ledger
        self.fails: dict[str, list[Exception]] = {}
        self.refuses: Callable[[str, tuple[Any, ...]], Exception | None] = lambda _name, _given: None
        self.batches: list[list[Recording]] = []
        self.calls: list[str] = []

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = cast(Any, getattr(function, "func", function)).__name__
        self.calls.append(name)
        error = self.fails[name].pop(0) if self.fails.get(name) else self.refuses(name, args)
        if error is not None:
            raise error
        if name == "record":
            self.batches.append(cast("list[Recording]", args[0]))
        return function(*args, **kwargs)

    def deploy(self, name: str, schedule: object, deployment: UUID | None = None, **options: Any) -> Consumer:
        """Add a consumer, and return it."""
        given = (name, deployment or uuid4(), uuid4(), declared(schedule, **options), False, False)
        return self.writer.consumers.deploy(*given, self.now())[0]

    def record(self, *recordings: Recording) -> list[UUID]:
        """Record, and return the ids of the decisions."""
        done = self.writer.events.record(recordings, self.now())
        return [decision.id for _, made in done for decision in made]

    @property
    def decisions(self) -> dict[UUID, DecisionRecord]:
        """The decisions, oldest first."""
        return {each.id: each for each in reversed(self.reader.decisions.find(limit=1_000))}

    @property
    def runs(self) -> dict[UUID, UUID]:
        """The runs of the decisions that have one."""
        return {number: each.flow_run_id for number, each in self.decisions.items() if each.flow_run_id is not None}

    @property
    def given_up(self) -> dict[UUID, str]:
        """The decisions that are undeliverable, with the reason."""
        return {number: each.error for number, each in self.decisions.items() if each.status == "undeliverable"}

    @property
    def states(self) -> dict[UUID, str]:
        """The last states of the runs that have ended."""
        ended = (each for each in self.decisions.values() if each.ended is not None)
        return {each.flow_run_id: each.run_state for each in ended if each.flow_run_id is not None}

    @property
    def uris(self) -> list[str]:
        """The assets of the recorded events, in their order."""
        return [event.uri for recording in self.reader.events.recordings() for event in recording.events]

    def read_until(self, name: str) -> datetime | None:
        """Return a cursor of the ledger."""
        kept = self.reader.cursor(name)
        return None if kept is None else datetime.fromisoformat(str(kept))


@cache
def _new_ledger() -> bytes:
    with TemporaryDirectory() as folder:
        Ledger.open(Path(folder) / "ledger.db", now=START).close()
        return (Path(folder) / "ledger.db").read_bytes()


@contextmanager
def ledger_here(now: Callable[[], datetime] = lambda: START) -> Generator[LedgerHere]:
    """Yield a new ledger."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        place.write_bytes(_new_ledger())
        with Ledger.open(place) as opened:
            yield LedgerHere(opened, now)
