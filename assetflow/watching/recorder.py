"""Record what a source brought. What cannot be recorded is set aside, so that it holds nothing up."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from assetflow.core.values.events import Recording
from assetflow.core.watchers.intake import RefusedChange, WatcherIntake
from assetflow.evaluator.health import Doubt, content_of, log_set_aside, reason_of

logger = logging.getLogger("assetflow.watching")

CANNOT_BE_KEPT = "it is refused, and what was sent and why cannot be kept; the log of `assetflow watcher` has more"


# Records in the ledger what a watcher found, and returns how many updates are new.
RecordIntake = Callable[[WatcherIntake], Awaitable[int]]


class Recorder:
    """Records what one source brings, however often the source is opened again."""

    def __init__(self, write: RecordIntake) -> None:
        self._write = write
        self._doubt = Doubt()

    async def record(self, intake: WatcherIntake) -> int:
        """Record an intake, and return how many updates are new.

        Raises:
            LedgerError: the ledger is in trouble; nothing is set aside.
        """
        try:
            new = await self._write(intake)
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
        await self._write(WatcherIntake(intake.source, notes=intake.notes))
        waiting = deque(intake.recordings)
        while waiting:
            recording = waiting.popleft()
            try:
                new += await self._write(WatcherIntake(intake.source, recordings=[recording], makers=intake.makers))
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                if len(recording.events) > 1:
                    waiting.extendleft(Recording(event.id, (event,)) for event in reversed(recording.events))
                    continue
                log_set_aside(recording, error)
                refused.append(_refused(recording, intake, error))
        await self._keep(intake.source, refused)
        return new + await self._write(replace(intake, recordings=[], refused=[], notes=[]))

    async def _keep(self, source: str, refused: Sequence[RefusedChange]) -> None:
        """Keep what is refused. What cannot be kept is kept without its content; if that fails too, the log has it."""
        for each in refused:
            for kept in (each, replace(each, payload=None, reason=CANNOT_BE_KEPT)):
                try:
                    await self._write(WatcherIntake(source, refused=[kept]))
                    break
                except Exception as error:
                    if not self._doubt.is_fault_of_a_value(error):
                        raise
                    logger.error("%s: the refused %s cannot be kept", source, each.id, exc_info=error)


def _refused(recording: Recording, intake: WatcherIntake, error: Exception) -> RefusedChange:
    names = dict.fromkeys(name for event in recording.events for name in intake.makers.get(event.id, ()))
    reason, rule = reason_of(error)
    return RefusedChange(recording.id, content_of(recording), reason, tuple(names), rule)
