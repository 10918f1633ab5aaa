"""Record what a source brought. What cannot be recorded is set aside, so that it holds nothing up."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from assetflow.core.values.events import Recording
from assetflow.core.watchers.intake import RefusedChange, WatcherIntake
from assetflow.evaluator.health import Doubt, content_of, log_set_aside, reason_of

logger = logging.getLogger("assetflow.watching")

CANNOT_BE_KEPT = "it is refused, and what was sent and why cannot be kept; the log of `assetflow watcher` has more"


class IntakeLedger(Protocol):
    """The ledger, as far as updates from outside are recorded in it."""

    async def record(self, intake: WatcherIntake) -> int:
        """Record what a watcher found, and return how many updates are new."""
        ...


class Recorder:
    """Records what one source brings, however often the source is opened again."""

    def __init__(self, ledger: IntakeLedger) -> None:
        self._ledger = ledger
        self._doubt = Doubt()

    async def record(self, intake: WatcherIntake) -> int:
        """Record an intake, and return how many updates are new.

        Raises:
            LedgerError: the ledger is in trouble; nothing is set aside.
        """
        try:
            new = await self._ledger.record(intake)
        except Exception as error:
            if not self._doubt.is_fault_of_a_value(error):
                self._doubt.note(error)
                raise
            new = await self._record_one_by_one(intake)
        self._doubt.clear()
        return new

    async def _record_one_by_one(self, intake: WatcherIntake) -> int:
        """Record each recording alone, and the updates of one that cannot be recorded each alone.

        What cannot be recorded then is refused. The cursor comes last.
        """
        new, refused = 0, list(intake.refused)
        # The note of a message without an id has to be there before its update is (10.3).
        await self._ledger.record(WatcherIntake(intake.source, notes=intake.notes))
        waiting = deque(intake.recordings)
        while waiting:
            recording = waiting.popleft()
            try:
                new += await self._ledger.record(
                    WatcherIntake(intake.source, recordings=[recording], makers=intake.makers)
                )
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                if len(recording.events) > 1:
                    waiting.extendleft(Recording(event.id, (event,)) for event in reversed(recording.events))
                    continue
                log_set_aside(recording, error)
                refused.append(_refused(recording, intake, error))
        await self._keep(intake.source, refused)
        return new + await self._ledger.record(replace(intake, recordings=[], refused=[], notes=[]))

    async def _keep(self, source: str, refused: Sequence[RefusedChange]) -> None:
        """Keep what is refused. What cannot be kept is kept without its content; if that fails too, the log has it."""
        for each in refused:
            for kept in (each, replace(each, payload=None, reason=CANNOT_BE_KEPT)):
                try:
                    await self._ledger.record(WatcherIntake(source, refused=[kept]))
                    break
                except Exception as error:
                    if not self._doubt.is_fault_of_a_value(error):
                        raise
                    logger.error("%s: the refused %s cannot be kept", source, each.id, exc_info=error)


def _refused(recording: Recording, intake: WatcherIntake, error: Exception) -> RefusedChange:
    names = dict.fromkeys(name for event in recording.events for name in intake.makers.get(event.id, ()))
    reason, rule = reason_of(error)
    return RefusedChange(recording.id, content_of(recording), reason, tuple(names), rule)
