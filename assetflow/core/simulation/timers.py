"""The time part of a simulation's consumers: which cron times a pass has to run (6.1)."""

from __future__ import annotations

from datetime import datetime

from assetflow.core.consumers import Consumer
from assetflow.core.timers import Timer, follow
from assetflow.core.timetables import Tick


class Timers:
    """The timers of all consumers that have a time table."""

    def __init__(self) -> None:
        self._timers: dict[int, Timer] = {}

    def follow(self, consumer: Consumer, now: datetime) -> None:
        """A consumer is new, has another schedule, or was paused or resumed."""
        timer = follow(self._timers.pop(consumer.id, None), consumer, now)
        if timer is not None:
            self._timers[consumer.id] = timer

    def due(self, consumer: Consumer, now: datetime) -> list[Tick]:
        """The times since the last call up to now; none while the consumer is paused."""
        timer = self._timers.get(consumer.id)
        if timer is None or timer.rests:
            return []
        self._timers[consumer.id] = timer.moved(now)
        return list(timer.due(now))
