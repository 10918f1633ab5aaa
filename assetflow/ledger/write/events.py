"""Record events, and keep what is refused as one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

from sqlalchemy import Connection, insert, select

from assetflow.core.freshness.demands import judge_silently
from assetflow.core.json_data import fit_json, fit_text
from assetflow.core.rules.adoption import Adoption, Decided
from assetflow.core.rules.fold import Recorded
from assetflow.core.rules.keeping import keep_up_to_date, look_at_all
from assetflow.core.rules.state.state import prefetch
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Recording, canonical_json
from assetflow.core.values.posted_events import kept_payload
from assetflow.core.wire.events import event_to_json
from assetflow.ledger.read.decisions import known_decisions
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import DECISION, REFUSED
from assetflow.ledger.write.failed_checks import keep_failed_checks
from assetflow.ledger.write.store import Operations

_ENDS = select(DECISION.c.id, DECISION.c.ended).where(in_values(DECISION.c.id, "ids"))
_NAMESPACE = UUID("0d6bb2f4-55a4-5d6e-9a44-3a0c3d5f6b1e")


class EventWriter(Operations):
    """Writes events."""

    def record(self, recordings: Sequence[Recording], now: datetime) -> list[tuple[Recorded, list[Decision]]]:
        """Record, queue and decide in one transaction, with a pass after each recording. Contract 3.1, 4.3.

        Events that are recorded already are left out, so the same recordings may come any number of times.

        Returns:
            For each recording what became of it, and the decisions of its pass.
        """
        with self._store.transaction(now) as unit:
            prefetch(unit.state, recordings)
            done = [self._store.record(unit.state, recording, now) for recording in recordings]
            for event, error in (each for recorded, _ in done for each in recorded.refused):
                reason, payload = str(error), event_to_json(event)
                _keep_refused(unit.connection, event.id, payload, reason, error.rule, "observation", now)
            if failed := [each for recorded, _ in done for each in recorded.failed_checks]:
                # A rebuilt ledger does not know what was reported before (8.17).
                keep_failed_checks(unit.connection, failed, None if self._store.adoption is None else now)
            return done

    def begin_adoption(self, decided: Sequence[Decided]) -> int:
        """Let events that earlier decisions consumed belong to these decisions, from now on.

        Returns:
            The number of decisions that are not in the ledger yet.
        """
        with self._store.writes() as connection:
            known = known_decisions(connection, [each.id for each in decided])
        self._store.adoption = Adoption(decided)
        return sum(each.id not in known for each in decided)

    def end_adoption(self, now: datetime) -> list[Decision]:
        """Decide as usual again: everything that can be found is recorded. Return the decisions that were left."""
        adoption = self._store.adoption
        if adoption is None:
            return []
        with self._store.transaction(now) as unit:
            ids = set(adoption.ids)
            known = {number: ended is None for number, ended in unit.connection.execute(_ENDS, {"ids": list(ids)})}
            decisions = adoption.finish(unit.state, unit.state.consumers.live(), now, known)
            look_at_all(unit.state, now)
            # The runs of adopted decisions are in the data graph already.
            adopted = [each for each in decisions if each.id in ids]
            made = [each for each in decisions if each.id not in ids]
            decisions = [*adopted, *keep_up_to_date(unit.state, made, now)]
            judge_silently(unit.state.freshness, now)
        self._store.adoption = None
        return decisions

    def refuse(
        self, payload: object, reason: str, rule: str | None, source: str, event_id: UUID | None, now: datetime
    ) -> bool:
        """Keep what was sent as an event and is refused, once per id. Contract 2.6.

        Parameters:
            payload: what was sent; only a part of a large payload is kept.
            source: where it came from, for people to read.
            event_id: its id; without an id, the same payload counts once.

        Returns:
            True if it is new.
        """
        number = event_id or uuid5(_NAMESPACE, f"{source}|{canonical_json(fit_json(payload))}")
        with self._store.writes() as connection:
            return _keep_refused(connection, number, payload, fit_text(reason), rule, source, now)


def _keep_refused(
    connection: Connection,
    number: UUID,
    payload: object,
    reason: str,
    rule: str | None,
    source: str,
    now: datetime,
) -> bool:
    """Keep what is refused; return False if its id is known."""
    if connection.scalar(select(REFUSED.c.number).where(REFUSED.c.id == number)) is not None:
        return False
    kept = kept_payload(payload)
    row = {"id": number, "payload": kept, "reason": reason, "rule": rule, "source": source, "at": now}
    connection.execute(insert(REFUSED), [row])
    return True
