"""Give a decision up, replay some, and remove queued events. Contract 3.7, 4.6."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.rules.registry import check_removal
from assetflow.core.values.words import some
from assetflow.errors import InvalidCall, UnknownEvent
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import Selection


def check_reason(why: str, *, rule: str) -> None:
    """Check that a reason is not blank.

    Raises:
        InvalidCall: it is; `where` is `why`.
    """
    if not why.strip():
        raise InvalidCall("the reason is blank", where="why", rule=rule, fix="Give a reason, which is kept")


def give_up(at: Installation, decision: UUID, *, by: str, why: str) -> None:
    """Give up a decision that waits for its run, so that later decisions of its consumer can go ahead. Contract 4.6.

    Raises:
        InvalidCall: the reason is blank; `where` is `why`.
        UnknownEvent: the decision does not exist, or does not wait for its run.
    """
    check_reason(why, rule="4.6")
    at.ledger.writer.decisions.give_up(decision, by=by, why=why, now=at.now(), late=at.is_late)
    at.on_recorded()


def replay(at: Installation, decisions: Iterable[UUID]) -> None:
    """Make undeliverable decisions wait for their runs again. Contract 4.6.

    Raises:
        UnknownEvent: one of them is not an undeliverable decision; those before it wait again.
    """
    for each in decisions:
        at.ledger.writer.decisions.replay(each, at.now())
    at.on_recorded()


_SHOWN = 10


def remove_queued(
    at: Installation,
    which: Selection,
    *,
    target_key: str | None = None,
    before: datetime | None = None,
    by: str,
    why: str,
) -> int:
    """Remove queued events, and return the number of receipts that were written for them.

    Parameters:
        which: the consumer, the asset and the event; without a consumer, all queues that have no partitions.
        target_key: the pending partition of a partitioned consumer.
        before: only events that were recorded before this time.
        by: who removes them; the receipts keep it.
        why: the reason; the receipts keep it.

    Raises:
        InvalidCall: a consumer, a key or the reason is missing; `where` is `consumer`, `key` or `why`.
        UnknownEvent: nothing that is queued matches.
    """
    check_reason(why, rule="3.7")
    consumer = None if which.consumer is None else which.consumer.consumer
    narrowed = which.uri is not None or which.event_id is not None

    def pending() -> Sequence[str]:
        return [] if consumer is None else at.ledger.reader.queues.pending_keys(consumer.id, limit=_SHOWN)

    check_removal(consumer, target_key, narrowed=narrowed, pending_keys=pending)
    removed = at.ledger.writer.queues.remove(
        which.number,
        uri=which.uri,
        event_id=which.event_id,
        before=before,
        target_key=target_key,
        by=by,
        why=why,
        now=at.now(),
        late=at.is_late,
    )
    if not removed:
        keys = pending() if target_key is not None else ()
        known = f"Keys with queued events: {some(list(keys))}" if keys else "`assetflow queue ls` lists what is queued"
        raise UnknownEvent("nothing is removed: no queued event matches", rule="3.7", fix=known)
    return removed
