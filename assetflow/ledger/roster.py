"""Consumers in the ledger's book, and the index by which events find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from assetflow.core.codec import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer
from assetflow.ledger.among import among
from assetflow.ledger.tables import CONSUMER, CONSUMER_TOKEN
from assetflow.ledger.work import Work

CONSUMER_COLUMNS = (
    CONSUMER.c.id,
    CONSUMER.c.name,
    CONSUMER.c.deployment_id,
    CONSUMER.c.declaration,
    CONSUMER.c.paused,
    CONSUMER.c.held,
)

_WANTING = select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value, CONSUMER_TOKEN.c.consumer).where(
    or_(
        *(and_(CONSUMER_TOKEN.c.kind == kind, among(CONSUMER_TOKEN.c.value, kind)) for kind in ("uri", "name", "alias"))
    )
)
_CONSUMERS = select(*CONSUMER_COLUMNS).where(among(CONSUMER.c.id, "numbers"), CONSUMER.c.removed_at.is_(None))


@lru_cache(maxsize=16_384)
def declaration_of(text: str) -> FlowDeclaration:
    """The declaration in a stored text, decoded once."""
    return declaration_from_text(text, where="ledger")


def consumer_from_row(row: Sequence[Any]) -> Consumer:
    """The consumer in a row that begins with `CONSUMER_COLUMNS`."""
    number, name, deployment_id, text, paused, held = row[:6]
    return Consumer(number, name, deployment_id, declaration_of(text).options, paused=paused, held=held)


class Roster:
    """The consumers: read when asked for by token or id, written at once, for they seldom change."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._consumers: dict[int, Consumer] = {}
        self._index: dict[Token, set[int]] = {}
        self._wanting: dict[frozenset[Token], Sequence[Consumer]] = {}
        self._texts: dict[int, str] = {}
        self._flows: dict[int, UUID | None] = {}

    def __len__(self) -> int:
        return len(self._consumers) + len(self._index) + len(self._wanting)

    def load(self, tokens: Iterable[Token]) -> None:
        """Read the consumers that want these tokens, as far as they are not known yet."""
        missing = dict.fromkeys(token for token in tokens if token not in self._index)
        if not missing:
            return
        self._index |= {token: set() for token in missing}
        values: dict[str, list[str]] = {"uri": [], "name": [], "alias": []}
        for kind, value in missing:
            values[kind].append(value)
        found = self._work.connection.execute(_WANTING, values).all()
        for kind, value, consumer in found:
            self._index[Token(kind, value)].add(consumer)
        self.load_ids(consumer for _, _, consumer in found)

    def load_ids(self, numbers: Iterable[int]) -> None:
        """Read these consumers, as far as they are not known yet."""
        missing = dict.fromkeys(number for number in numbers if number not in self._consumers)
        if missing:
            for row in self._work.connection.execute(_CONSUMERS, {"numbers": missing}).all():
                self._consumers[row[0]] = consumer_from_row(row)

    def find(self, number: int) -> Consumer | None:
        """The consumer with this id, unless it was removed."""
        self.load_ids([number])
        return self._consumers.get(number)

    def known_wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer] | None:
        """The consumers that want these tokens, unless they have to be looked for."""
        return self._wanting.get(tokens)

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        found = self._wanting.get(tokens)
        if found is None:
            self.load(tokens)
            numbers = set[int]().union(*(self._index[token] for token in tokens))
            found = self._wanting[tokens] = [self._consumers[number] for number in sorted(numbers)]
        return found

    def describe(self, number: int, text: str, flow_id: UUID | None = None) -> None:
        """Keep the text of a consumer's declaration, and a new one's flow, for when it is saved."""
        self._texts[number] = text
        self._flows[number] = flow_id

    def save(self, consumer: Consumer) -> None:
        before = self.find(consumer.id)
        columns: dict[str, Any] = {"name": consumer.name, "paused": consumer.paused, "held": consumer.held}
        if before is None or before.options is not consumer.options:
            columns["declaration"] = self._text_of(consumer)
        if before is None:
            row = {"id": consumer.id, "deployment_id": consumer.deployment_id, "since": self._work.now}
            self._work.connection.execute(insert(CONSUMER), [row | columns | {"flow_id": self._flows.get(consumer.id)}])
        else:
            self._work.connection.execute(update(CONSUMER).where(CONSUMER.c.id == consumer.id).values(columns))
        self._texts.pop(consumer.id, None)
        self._flows.pop(consumer.id, None)
        self._consumers[consumer.id] = consumer
        self._reindex(consumer.id, before.schedule.tokens if before else frozenset(), consumer.schedule.tokens)

    def forget(self, consumer: Consumer) -> None:
        gone = update(CONSUMER).where(CONSUMER.c.id == consumer.id)
        self._work.connection.execute(gone.values(removed_at=self._work.now))
        self._reindex(consumer.id, consumer.schedule.tokens, frozenset())
        self._consumers.pop(consumer.id, None)

    def _text_of(self, consumer: Consumer) -> str:
        return self._texts.get(consumer.id) or declaration_to_text(FlowDeclaration(consumer.options))

    def _reindex(self, number: int, before: frozenset[Token], tokens: frozenset[Token]) -> None:
        self._wanting.clear()
        gone, new = before - tokens, tokens - before
        if gone:
            mine = CONSUMER_TOKEN.c.consumer == number
            rows = [{"kind": kind, "value": value} for kind, value in gone]
            of_token = (CONSUMER_TOKEN.c.kind == bindparam("kind"), CONSUMER_TOKEN.c.value == bindparam("value"))
            self._work.connection.execute(delete(CONSUMER_TOKEN).where(mine, *of_token), rows)
        if new:
            rows = [{"kind": kind, "value": value, "consumer": number} for kind, value in new]
            self._work.connection.execute(insert(CONSUMER_TOKEN), rows)
        for token in gone & self._index.keys():
            self._index[token].discard(number)
        for token in new & self._index.keys():
            self._index[token].add(number)
