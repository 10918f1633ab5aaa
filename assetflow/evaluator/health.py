"""Keep loops running whatever fails, and log each failure once."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from assetflow.core.values.events import Recording
from assetflow.core.values.words import shown
from assetflow.core.wire import event_to_json
from assetflow.errors import AssetflowError, EvaluatorRunning, LeaseLost, LedgerError, LedgerForeign, StatementRefused
from assetflow.prefect_io.rest import Json

logger = logging.getLogger("assetflow.evaluator")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 15.0
REASONS_LOGGED = 10
# The errors that end the evaluator, not only the loop that meets them.
ENDS_ALL = (EvaluatorRunning, LeaseLost, LedgerForeign)


@dataclass
class Backoff:
    """The pauses between attempts, in seconds: each is twice the last one, up to a limit."""

    first: float = FIRST_PAUSE
    longest: float = LONGEST_PAUSE
    failures: int = 0

    def next(self) -> float:
        """Count one more failure, and return the seconds to wait after it."""
        pause = min(self.longest, self.first * 2 ** min(self.failures, 30))
        self.failures += 1
        return pause

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self.failures = 0


async def heard(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event, and return True if it was set in time; `None` waits without a limit.

    `asyncio.wait_for` would not do: before Python 3.12 it drops a cancellation that arrives together with the event,
    and the cancelled loop goes on.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


@dataclass
class Trouble:
    """Something that does not work now.

    Attributes:
        since: the time of its first failure.
        reason: the reason of its last failure.
        logged: the reasons that the log has.
    """

    since: datetime
    reason: str
    logged: set[str]


@dataclass(frozen=True)
class HeldUp:
    """Something that the evaluator cannot do now, since when, and why."""

    name: str
    since: datetime
    reason: str


class Health:
    """The parts of the evaluator that do not work now. Logs a failure when its reason is new, and its end."""

    def __init__(self) -> None:
        self._down: dict[str, Trouble] = {}

    @property
    def troubles(self) -> dict[str, str]:
        """The parts that do not work now, each with the reason."""
        return {name: trouble.reason for name, trouble in self._down.items()}

    @property
    def held_up(self) -> list[HeldUp]:
        """The same, each with the time of its first failure."""
        return [HeldUp(name, trouble.since, trouble.reason) for name, trouble in self._down.items()]

    def down(self, name: str, error: BaseException) -> None:
        """Note that something failed. The log has a traceback if the error is not one of assetflow's."""
        reason = str(error)
        trouble = self._down.setdefault(name, Trouble(datetime.now(UTC), reason, set()))
        trouble.reason = reason
        # Log each reason once, even if two of them alternate.
        if reason in trouble.logged or len(trouble.logged) == REASONS_LOGGED:
            return
        trouble.logged.add(reason)
        expected = isinstance(error, AssetflowError)
        logger.warning("%s: %s; trying again", name, error or repr(error), exc_info=None if expected else error)

    def up(self, name: str) -> None:
        """Note that something works."""
        trouble = self._down.pop(name, None)
        if trouble is not None:
            seconds = (datetime.now(UTC) - trouble.since).total_seconds()
            logger.info("%s: works again after %.0f s", name, seconds)


class Loop(ABC):
    """Something that the evaluator does again and again, and at once when it is woken.

    Parameters:
        name: what it does, for messages.
    """

    def __init__(self, name: str, health: Health) -> None:
        self.name = name
        self._health = health
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Take a step now: there may be something to do."""
        self._wake.set()

    async def run(self) -> None:
        """Take steps, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again, nothing is lost.
        """
        while True:
            self._wake.clear()
            pause = await self.step()
            self._health.up(self.name)
            await heard(self._wake, pause)

    @abstractmethod
    async def step(self) -> float:
        """Do what there is to do; return the seconds after which to look again if nobody wakes it."""


async def keep_going(name: str, loop: Callable[[], Awaitable[None]], health: Health) -> None:
    """Run a loop until it returns, and start it again after a pause when it fails.

    The loop calls `health.up(name)` when it works. The pauses then start with the shortest one again.

    Raises:
        EvaluatorRunning, LeaseLost, LedgerForeign: another evaluator has taken over.
    """
    backoff = Backoff()
    while True:
        started = time.monotonic()
        try:
            await loop()
            return
        except ENDS_ALL:
            raise
        except Exception as error:
            if name not in health.troubles or time.monotonic() - started > LONGEST_PAUSE:
                backoff.reset()
            health.down(name, error)
        await asyncio.sleep(backoff.next())


async def run_until(stop: asyncio.Event | None, work: Coroutine[Any, Any, None]) -> None:
    """Run the work of a process until `stop` is set, or for ever without one. Raise the error that ends it."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


@contextmanager
def one_reason() -> Generator[None]:
    """In a block with a group of loops, raise the first error that ends all of them by itself, not in a group.

    `except*` would not do: before Python 3.11.4 it puts what is raised in it into a group again.

    Raises:
        EvaluatorRunning, LeaseLost, LedgerForeign: another evaluator has taken over.
    """
    try:
        yield
    except ExceptionGroup as group:
        ends, _ = group.split(ENDS_ALL)
        if ends is None:
            raise
        raise ends.exceptions[0] from None


# The errors that a value may cause, or the ledger.
UNKNOWN = (StatementRefused, MemoryError)
# The errors that are the ledger's trouble, at least at first.
TROUBLE = (LedgerError, OSError, MemoryError)
# An unknown error counts as the ledger's trouble for so many seconds, and then as the fault of a value.
DOUBT = 120.0


class Doubt:
    """Since when an unknown error has stopped what waits at the head of a line."""

    def __init__(self) -> None:
        self._since: float | None = None

    def note(self, error: Exception) -> None:
        """Note an error that counted as the ledger's trouble."""
        if not isinstance(error, UNKNOWN):
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()

    def clear(self) -> None:
        """Note that the ledger was written."""
        self._since = None

    def is_fault_of_a_value(self, error: Exception) -> bool:
        """Return True if the values to be written caused the error, not the ledger."""
        if isinstance(error, UNKNOWN):
            return self._since is not None and time.monotonic() - self._since >= DOUBT
        return not isinstance(error, TROUBLE)


def content_of(recording: Recording) -> Json:
    """Return a recording as JSON for the list of what is refused; of an event that cannot be written, only the id."""
    events: list[Json] = []
    for event in recording.told:
        try:
            events.append(event_to_json(event))
        except Exception:
            events.append({"id": str(event.id)})
    return {"id": str(recording.id), "events": events}


def reason_of(error: Exception) -> tuple[str, str | None]:
    """Return why a value is refused, and the number of the rule that it breaks."""
    # The reason may quote text that cannot be written or displayed.
    if isinstance(error, AssetflowError):
        return shown(error), error.rule
    return shown(f"it cannot be recorded: {error}. This is unexpected; the process's log has more"), None


def log_set_aside(recording: Recording, error: Exception) -> None:
    """Log that a recording is refused because it cannot be recorded, with the traceback if that is unexpected."""
    if isinstance(error, AssetflowError):
        logger.warning("recording %s cannot be recorded; it is kept as refused: %s", recording.id, shown(error))
    else:
        logger.error("recording %s cannot be recorded; it is kept as refused", recording.id, exc_info=error)
