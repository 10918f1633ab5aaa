"""Calls listeners: a thread of its own that follows the ledger, so that nobody waits for a listener.

What listeners hear comes from the ledger itself, after the commit, whichever process wrote it. How far they have heard
is kept in the ledger: a slow listener falls behind and loses nothing, and a restart goes on where it was. Only the
runs, which the evaluator creates in Prefect, come from memory.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, cast

from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.news import News, Seen
from assetflow.listeners import DecisionMade, Listeners, RunCreated

logger = logging.getLogger("assetflow.evaluator")

CURSOR = "listeners"
LOOK_EVERY = 1.0
READ_AT_ONCE = 100
RUNS_WAITING = 10_000
SECONDS_TO_STOP = 5.0


class Listening:
    """The listeners of an evaluator at work, for as long as the block lasts; without listeners it does nothing.

    The first evaluator that has listeners tells them what happens from then on.
    """

    def __init__(self, ledger: Ledger, listeners: Listeners) -> None:
        self._ledger = ledger
        self._listeners = listeners
        self._runs: deque[RunCreated] = deque()
        self._seen = Seen()
        self._kept: Seen | None = None
        self._news = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._work, name="assetflow-listeners", daemon=True)

    def __enter__(self) -> Self:
        kept = cast("dict[str, Any] | None", self._ledger.reader.cursor(CURSOR))
        if self._listeners:
            self._seen = self._ledger.reader.newest() if kept is None else Seen(**kept)
            self._keep()
            self._thread.start()
        elif kept is not None:
            # Who listens again some day hears what happens then, not all that happened meanwhile.
            self._ledger.writer.set_cursor(CURSOR, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(SECONDS_TO_STOP)
        if self._thread.is_alive():
            logger.warning("a listener does not come to an end; it is left behind")

    def wake(self) -> None:
        """There may be something new in the ledger."""
        self._news.set()

    def run_created(self, run: RunCreated) -> None:
        """A run is there. While very many wait to be told of, it is not told of."""
        if not self._listeners:
            return
        if len(self._runs) >= RUNS_WAITING:
            logger.warning("listeners are too slow: they do not hear of run %s", run.flow_run_id)
            return
        self._runs.append(run)
        self._news.set()

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._news.clear()
            try:
                busy = self._tell_news()
            except LedgerError as error:
                logger.warning("listeners wait: %s", error)
                busy = False
            if not busy:
                self._news.wait(LOOK_EVERY)

    def _tell_news(self) -> bool:
        """Tell what is new in the ledger, then the runs that came before it was read; whether there may be more."""
        runs = len(self._runs)
        news = self._ledger.reader.news(self._seen, limit=READ_AT_ONCE)
        for hook, value, seen in self._told_by(news):
            if self._stopped.is_set():
                break
            self._listeners.tell(hook, value)
            self._seen = seen
        self._keep()
        if news.assets or news.events or news.decisions:
            return True
        for _ in range(runs):
            if self._stopped.is_set():
                break
            self._listeners.tell("on_run_created", self._runs.popleft())
        return False

    def _told_by(self, news: News) -> Iterator[tuple[str, object, Seen]]:
        """What to tell in turn, and how far listeners have heard after it."""
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

    def _keep(self) -> None:
        if self._seen != self._kept:
            self._ledger.writer.set_cursor(CURSOR, asdict(self._seen))
            self._kept = self._seen
