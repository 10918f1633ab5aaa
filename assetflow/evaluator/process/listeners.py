"""Call the users' listeners, in a thread of its own that reads the ledger, so that nothing waits for a listener.

Listeners are called after the commit, whichever process has written. The ledger stores the position up to which they
were called: a slow listener falls behind and misses nothing, and the next evaluator goes on from there. Only the runs
that this evaluator creates in Prefect come from memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, cast

from assetflow.evaluator.health import Health, logger
from assetflow.ledger import Ledger
from assetflow.ledger.read.events import FeedPage, Position
from assetflow.listeners import DeadlineMissed, DecisionMade, Listeners, RunCreated

CURSOR = "listeners"
LOOK_EVERY = 1.0
READ_AT_ONCE = 100
RUNS_WAITING = 10_000
SECONDS_TO_STOP = 5.0


class ListenerThread:
    """A context in which the listeners of an evaluator are called. Without listeners it does nothing.

    The first evaluator with listeners calls them for what happens from then on.
    """

    def __init__(self, ledger: Ledger, listeners: Listeners) -> None:
        self._ledger = ledger
        self._listeners = listeners
        self._health = Health()
        self._runs: deque[RunCreated] = deque()
        self._seen = Position()
        self._kept: Position | None = None
        self._woken = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._work, name="assetflow-listeners", daemon=True)

    def __enter__(self) -> Self:
        kept = cast("dict[str, Any] | None", self._ledger.reader.cursor(CURSOR))
        if self._listeners:
            self._seen = self._ledger.reader.feed.end() if kept is None else Position(**kept)
            self._save()
            self._thread.start()
        elif kept is not None:
            # Forget the position: listeners that are added later are not called for what happened meanwhile.
            self._ledger.writer.set_cursor(CURSOR, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)
        if self._thread.is_alive():
            logger.warning("a listener does not return; the evaluator ends without it")

    def wake(self) -> None:
        """Look now: the ledger may have changed."""
        self._woken.set()

    def run_created(self, run: RunCreated) -> None:
        """Queue a call of the listeners for a new run. Drop it if too many calls are queued."""
        if not self._listeners:
            return
        if len(self._runs) >= RUNS_WAITING:
            logger.warning("listeners are too slow: they are not called for run %s", run.flow_run_id)
            return
        self._runs.append(run)
        self._woken.set()

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                busy = self._call_some()
                self._health.up("listeners")
            except Exception as error:
                self._health.down("listeners", error)
                busy = False
            if not busy:
                self._woken.wait(LOOK_EVERY)

    def _call_some(self) -> bool:
        """Call the listeners for the next changes, else for the runs that were queued. Return True after changes."""
        runs = len(self._runs)
        news = self._ledger.reader.feed.after(self._seen, limit=READ_AT_ONCE)
        for hook, value, seen in self._calls(news):
            if self._stopped.is_set():
                break
            self._listeners.tell(hook, value)
            self._seen = seen
        self._save()
        if news.assets or news.events or news.decisions or news.deadlines:
            return True
        for _ in range(runs):
            if self._stopped.is_set():
                break
            self._listeners.tell("on_run_created", self._runs.popleft())
        return False

    def _calls(self, news: FeedPage) -> Iterator[tuple[str, object, Position]]:
        """Yield each call, the hook and its argument, with the position after it."""
        seen = self._seen
        for number, asset in news.assets:
            seen = replace(seen, asset=number)
            yield "on_asset_created", asset, seen
        for event, aliases in news.events:
            for alias in aliases:
                yield "on_asset_alias_created", alias, seen
            yield "on_asset_changed", event.asset, seen
            seen = replace(seen, event=event.sequence or seen.event)
            yield "on_asset_event_emitted", event, seen
        for decision, events in news.decisions:
            made = DecisionMade(
                decision.id,
                decision.consumer_name,
                decision.deployment_id,
                decision.target_key,
                events,
                decision.made,
            )
            seen = replace(seen, decision=decision.number)
            yield "on_decision", made, seen
        for each in news.deadlines:
            seen = replace(seen, deadline=each.number)
            late = (each.target_key, each.due, each.missing, each.queued, each.then)
            yield "on_deadline_missed", DeadlineMissed(each.consumer_name, each.deployment_id, *late), seen

    def _save(self) -> None:
        if self._seen != self._kept:
            self._ledger.writer.set_cursor(CURSOR, asdict(self._seen))
            self._kept = self._seen
