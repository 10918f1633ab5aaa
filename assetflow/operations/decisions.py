"""Show a decision, give one up, replay some."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from assetflow.errors import InvalidCall, UnknownEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.installation import Installation


def check_reason(why: str, *, rule: str) -> None:
    """Check that a reason is not blank.

    Raises:
        InvalidCall: it is; `where` is `why`.
    """
    if not why.strip():
        raise InvalidCall("the reason is blank", where="why", rule=rule, fix="Give a reason, which is kept")


def decision_with(reader: Reader, decision: UUID) -> DecisionRecord:
    """Return the decision with this id.

    Raises:
        UnknownEvent: no decision has it; `where` is `decision`.
    """
    record = reader.decisions.get(decision)
    if record is None:
        raise UnknownEvent(
            f"there is no decision {decision}", where="decision", fix="`assetflow decisions ls` lists the decisions"
        )
    return record


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
