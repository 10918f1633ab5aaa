"""Write the changes of a unit of work to the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from assetflow.core.rules.state import State
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import LedgerError
from assetflow.ledger.fold.freshness_writing import write_freshness
from assetflow.ledger.fold.source import write_clocks
from assetflow.ledger.sql.bulk import delete_rows, in_values, insert_rows, update_rows, upsert_rows
from assetflow.ledger.sql.rows import STORED_EVENT, event_to_row
from assetflow.ledger.sql.tables import (
    ALIAS,
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_TOKEN,
    DECISION,
    EVENT_ALIAS,
    NO_CONSUMER,
    NO_KEY,
    PENDING,
    RECEIPT,
)

_DESCRIBE = (
    update(ASSET).where(ASSET.c.uri == bindparam("of_uri")).values(group=bindparam("group"), extra=bindparam("extra"))
)
_NAME = upsert_rows(*ASSET_NAME.c)
_KNOWN_ALIASES = select(ALIAS.c.name).where(in_values(ALIAS.c.name, "aliases"))
_DROP_TOKEN = delete(CONSUMER_TOKEN).where(
    CONSUMER_TOKEN.c.kind == bindparam("of_kind"),
    CONSUMER_TOKEN.c.value == bindparam("of_value"),
    CONSUMER_TOKEN.c.consumer == bindparam("of_consumer"),
)
_ADD_EVENTS = insert_rows(*STORED_EVENT)
_ADD_ALIASES = insert_rows(*EVENT_ALIAS.c)
_RECEIPT_KEY = (RECEIPT.c.sequence, RECEIPT.c.consumer, RECEIPT.c.target_key)
_ADD_RECEIPTS = insert_rows(*RECEIPT.c)
_CHANGE_RECEIPTS = upsert_rows(*RECEIPT.c)
_CONSUME = update_rows(*_RECEIPT_KEY, RECEIPT.c.decision, RECEIPT.c.at, status="consumed")
_DROP_RECEIPTS = delete_rows(*_RECEIPT_KEY)
_COUNT = upsert_rows(*PENDING.c)
_DROP_PENDING = delete_rows(PENDING.c.consumer, PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key)
_ADD_DECISIONS = insert_rows(
    DECISION.c.number,
    DECISION.c.id,
    DECISION.c.consumer,
    DECISION.c.deployment_id,
    DECISION.c.target_key,
    DECISION.c.made,
    DECISION.c.kind,
    DECISION.c.status,
    DECISION.c.attempts,
    DECISION.c.error,
    DECISION.c.run_state,
    DECISION.c.opening,
    DECISION.c.by_deadline,
    DECISION.c.decided,
    DECISION.c.scheduled,
    DECISION.c.because,
)


@dataclass
class Writing:
    """The changes of a state, to be written in one transaction.

    Parameters:
        last_decision: the number of the last decision before these.
        declarations: the text of the declaration and the flow of each consumer for which they are known.
    """

    connection: Connection
    state: State
    now: datetime
    last_decision: int
    declarations: Mapping[int, tuple[str, UUID | None]] = field(default_factory=dict[int, "tuple[str, UUID | None]"])

    def write(self) -> None:
        """Write all changes, each table after the tables that it refers to."""
        self._assets()
        self._links()
        self._consumers()
        self._events()
        self._decisions()
        self._receipts()
        self._counts()
        write_clocks(self.connection, self.state.changes)
        kept = self.state.freshness
        if kept.compares or kept.changes.flows or kept.changes.is_idle:
            write_freshness(self.connection, kept.changes)

    def _assets(self) -> None:
        changes = self.state.changes
        if changes.assets:
            rows = [{"uri": uri, "first_seen": self.now} | self._description(uri) for uri in changes.assets]
            self.connection.execute(insert(ASSET), rows)
        changed = [uri for uri in changes.descriptions if uri not in changes.assets]
        if changed:
            self.connection.execute(_DESCRIBE, [{"of_uri": uri} | self._description(uri) for uri in changed])
        _NAME.run(self.connection, list(changes.names.items()))

    def _description(self, uri: str) -> dict[str, Any]:
        group, extra = self.state.names.description_of(uri)
        return {"group": group, "extra": extra}

    def _links(self) -> None:
        links = self.state.changes.links
        if not links:
            return
        aliases = dict.fromkeys(alias for alias, _ in links)
        known = set(self.connection.scalars(_KNOWN_ALIASES, {"aliases": aliases}))
        rows = [{"name": alias, "first_seen": self.now} for alias in aliases if alias not in known]
        if rows:
            self.connection.execute(insert(ALIAS), rows)
        rows = [{"alias": alias, "uri": uri, "since": self.now} for alias, uri in links]
        self.connection.execute(insert(ALIAS_LINK), rows)

    def _consumers(self) -> None:
        consumers = self.state.changes.consumers
        # Removed consumers first: the one that takes the place of another may have its name.
        for before, after in sorted(consumers.values(), key=lambda each: each[1] is not None):
            if after is not None:
                self._save(before, after)
            elif before is not None:
                gone = update(CONSUMER).where(CONSUMER.c.id == before.id).values(removed_at=self.now)
                self.connection.execute(gone)
        tokens = {number: (_tokens(before), _tokens(after)) for number, (before, after) in consumers.items()}
        gone = [_token_row(number, token, "of_") for number, (old, new) in tokens.items() for token in old - new]
        if gone:
            self.connection.execute(_DROP_TOKEN, gone)
        added = [_token_row(number, token) for number, (old, new) in tokens.items() for token in new - old]
        if added:
            self.connection.execute(insert(CONSUMER_TOKEN), added)

    def _save(self, before: Consumer | None, after: Consumer) -> None:
        text, flow_id = self.declarations.get(after.id, ("", None))
        columns: dict[str, Any] = {
            "name": after.name,
            "paused": after.paused,
            "held": after.held,
            "deployed": after.deployed,
            "switched_late": after.switched_late,
            "listed": after.options.takes_part,
        }
        if before is None or before.options is not after.options:
            columns["declaration"] = text or declaration_to_text(FlowDeclaration(after.options))
        if before is None:
            new = {"id": after.id, "deployment_id": after.deployment_id, "flow_id": flow_id, "since": self.now}
            self.connection.execute(insert(CONSUMER), [new | columns])
        else:
            if after.options.takes_part and not before.options.takes_part:
                columns["since"] = self.now
            self.connection.execute(update(CONSUMER).where(CONSUMER.c.id == after.id).values(columns))

    def _events(self) -> None:
        changes = self.state.changes
        rows = [event_to_row(*each) for each in zip(changes.events, changes.recordings, strict=True)]
        _ADD_EVENTS.run(self.connection, rows)
        aliases = [(alias, event.sequence) for event in changes.events for alias in event.aliases]
        _ADD_ALIASES.run(self.connection, aliases)

    def _decisions(self) -> None:
        rows: list[tuple[Any, ...]] = []
        for number, each in enumerate(self.state.changes.decisions, self.last_decision + 1):
            of = (number, each.id, each.consumer, each.deployment_id, each.target_key)
            timed = (each.opening, each.by_deadline, max(self.now, each.made), each.scheduled)
            rows.append((*of, each.made, each.kind, "waiting", 0, "", "", *timed, each.because))
        _ADD_DECISIONS.run(self.connection, rows)

    def _receipts(self) -> None:
        changes, now = self.state.changes, self.now
        numbers = {each.id: number for number, each in enumerate(changes.decisions, self.last_decision + 1)}
        new: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        gone: list[tuple[int, int, str]] = []
        for event, receipts in changes.receipts.items():
            is_new = event >= changes.first
            rows = new if is_new else changed
            for (consumer, target_key), receipt in receipts.items():
                key = (event, consumer or NO_CONSUMER, target_key or NO_KEY)
                if receipt is not None:
                    decision = None if receipt.decision is None else numbers[receipt.decision]
                    by = (receipt.by, receipt.why, receipt.error)
                    rows.append((*key, receipt.status, decision, *by, receipt.at or now))
                elif not is_new:
                    gone.append(key)
        # Sorted as the table is: neighbours are on the same page. What changed after it was consumed is written last.
        consumed = sorted((e, consumer, key or NO_KEY, numbers[d], now) for e, consumer, key, d in changes.consumed)
        if _CONSUME.run(self.connection, consumed) != len(consumed):
            raise LedgerError(
                "the updates to consume are not queued in the ledger as this process remembers it",
                fix="Nothing was written; the next attempt reads the ledger again",
            )
        _DROP_RECEIPTS.run(self.connection, gone)
        _CHANGE_RECEIPTS.run(self.connection, sorted(changed))
        _ADD_RECEIPTS.run(self.connection, new)

    def _counts(self) -> None:
        counts: list[tuple[int, str, str, str, int]] = []
        gone: list[tuple[int, str, str, str]] = []
        for (consumer, target_key, uri, key), (before, now) in self.state.changes.counts.items():
            if now == before:
                continue
            place = (consumer, target_key or NO_KEY, uri, key or NO_KEY)
            if now:
                counts.append((*place, now))
            else:
                gone.append(place)
        # Sorted as the table is: neighbours are on the same page.
        _DROP_PENDING.run(self.connection, sorted(gone))
        _COUNT.run(self.connection, sorted(counts))


def _tokens(consumer: Consumer | None) -> frozenset[Token]:
    return frozenset() if consumer is None else consumer.options.wanted_tokens


def _token_row(number: int, token: Token, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}kind": token.kind, f"{prefix}value": token.value, f"{prefix}consumer": number}
