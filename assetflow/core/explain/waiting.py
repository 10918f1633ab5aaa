"""What holds a timed queue back, when that is over, and what expires meanwhile. Contract 9.15."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from assetflow.core.explain.facts import names_in
from assetflow.core.rules.deadlines import next_deadline
from assetflow.core.rules.state import State
from assetflow.core.rules.waits import Reason, TimedQueue, Waits
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import at, count


@dataclass(frozen=True)
class Waiting:
    """The waits of one queue, as the clock knows them.

    Attributes:
        waits: what the queue waits for, with the instant at which that is over; `None` if nobody knows it.
        expires: the events that expire, and when, if nothing else happens.
        deadline: the next deadline that the clock looks at; `None` if there is none.
        lacking: the number of updates that `min_events` still asks for.
        opens_for: the time of the timetable for which a resume now opens the schedule; `None` if there is none.
        name_of: returns the readable name of a URI.
    """

    waits: Waits
    expires: tuple[tuple[AssetEvent, datetime], ...] = ()
    deadline: datetime | None = None
    lacking: int = 0
    opens_for: datetime | None = None
    name_of: Callable[[str], str] = field(default=str, compare=False)

    @property
    def decides_now(self) -> bool:
        """True if nothing holds the queue back."""
        return not self.waits.keys() - {"at_latest"}

    @property
    def until(self) -> datetime | None:
        """The latest instant that the queue waits for, as far as it is known; `None` if no instant is known."""
        return max((moment for reason, moment in self.waits.items() if moment and reason in _WHY), default=None)

    @property
    def words(self) -> str:
        """The things that the queue waits for, as a sentence: the latest known instant comes first."""
        known = [(moment, _WHY[reason]) for reason, moment in self.waits.items() if moment and reason in _WHY]
        parts = [f"until {at(moment)} ({why})" for moment, why in sorted(known, reverse=True)]
        parts += [
            f"for {self._unknown(reason)}"
            for reason, moment in self.waits.items()
            if moment is None and reason not in ("condition", "update")
        ]
        if (latest := self.waits.get("at_latest")) is not None:
            parts.append(f"at the latest until {at(latest)} (max_wait)")
        return f"It waits {', '.join(parts)}." if parts else ""

    @property
    def notes(self) -> list[str]:
        """Sentences about the resume, about what expires, and about the next deadline."""
        found = [
            f"The update {event.id} of {self.name_of(event.uri)} expires at {at(moment)}, "
            "unless its time gate holds by then."
            for event, moment in self.expires[:5]
        ]
        if self.opens_for is not None:
            found.insert(0, f"It opens at the resume, for {at(self.opens_for)}.")
        if self.deadline is not None:
            found.append(f"Its next deadline is at {at(self.deadline)}.")
        return found

    @property
    def coming(self) -> list[tuple[datetime, str]]:
        """The instants that are to come if nothing else happens, in order, each with what happens then."""
        found = [(moment, _THEN[reason]) for reason, moment in self.waits.items() if moment and reason in _THEN]
        found += [(moment, f"An update of {self.name_of(event.uri)} expires.") for event, moment in self.expires[:5]]
        if self.deadline is not None:
            found.append((self.deadline, "Its deadline."))
        return sorted(found)

    def _unknown(self, reason: Reason) -> str:
        return count(self.lacking, "more update") + " (min_events)" if reason == "more" else _FOR[reason]


_WHY: dict[Reason, str] = {
    "opening": "its schedule opens then",
    "cooldown": "cooldown after the last decision",
    "quiet": "debounce after the newest update",
}
_THEN: dict[Reason, str] = {
    "opening": "Its schedule opens.",
    "cooldown": "The cooldown after its last decision ends.",
    "quiet": "It has been quiet for long enough (debounce).",
    "at_latest": "It waits for more updates until then at the latest (max_wait).",
}
_FOR: dict[Reason, str] = {
    "resume": "a resume",
    "run": "the end of its run (coalesce)",
    "opening": "an opening that does not come any more",
}


def waiting_of(state: State, consumer: Consumer, target_key: str | None, now: datetime) -> Waiting:
    """Return what the clock says about a queue of a timed consumer now."""
    queue = TimedQueue(state, consumer, target_key, now, recorded=True)
    lacking = max(0, (consumer.options.intake.min_events or 0) - len(queue.events))
    opens_for = None if consumer.decides or queue.hours is None or not queue.is_open else queue.hours.opened
    expires = tuple(queue.line.expiries())
    return Waiting(queue.waits(), expires, next_deadline(state, queue), lacking, opens_for, names_in(state))
