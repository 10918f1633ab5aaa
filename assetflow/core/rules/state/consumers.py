"""The consumers in the state, and the index that finds the consumers of an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assetflow.core.condition_tree import Token
from assetflow.core.rules.state.changes import Changes
from assetflow.core.rules.state.kept import Kept, weight_of_json
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.schedules import ConsumerOptions


def weight_of_options(options: ConsumerOptions) -> int:
    """Return about how many bytes the options of a consumer take in memory; most of them are its schedule."""
    tokens = len(options.wanted_tokens) + len(options.data.tokens)
    return 600 + 600 * tokens + sum(weight_of_json(asset.extra) for asset in options.schedule.named_assets)


def _weight(consumer: Consumer) -> int:
    return 600 + weight_of_options(consumer.options)


def _weight_of_numbers(found: set[int]) -> int:
    return 500 + 60 * len(found)


def _weight_of_list(found: Sequence[Consumer]) -> int:
    return 500 + 8 * len(found)


class Consumers:
    """The consumers by id, and by the tokens in their schedules."""

    def __init__(self, source: StateSource, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        self._consumers = Kept[int, Consumer](limit, _weight)
        self._index = Kept[Token, set[int]](limit, _weight_of_numbers)
        self._wanting = Kept[frozenset[Token], Sequence[Consumer]](limit, _weight_of_list)

    def load(self, tokens: Iterable[Token]) -> None:
        """Read the consumers whose schedules have these tokens, unless they are remembered."""
        missing: dict[Token, set[int]] = {token: set() for token in self._index.unknown(tokens)}
        if not missing:
            return
        for token, number in self._source.wanting(missing):
            missing[token].add(number)
        for token, numbers in missing.items():
            self._index.keep(token, numbers)
        self.load_ids(set[int]().union(*missing.values()))

    def load_ids(self, numbers: Iterable[int]) -> None:
        """Read the consumers with these ids, unless they are remembered."""
        missing = self._consumers.unknown(numbers)
        if missing:
            for consumer in self._source.consumers(missing):
                self._consumers.keep(consumer.id, consumer)

    def find(self, number: int) -> Consumer | None:
        """Return the consumer with this id, or `None` if it was removed."""
        if number in self._changes.consumers:
            return self._changes.consumers[number][1]
        self.load_ids([number])
        return self._consumers.find(number)

    def live(self) -> Sequence[Consumer]:
        """Return all consumers that were not removed, ordered by id."""
        numbers = set(self._source.live())
        for number, (_, after) in self._changes.consumers.items():
            (numbers.discard if after is None else numbers.add)(number)
        self.load_ids(numbers)
        return [self._consumers[number] for number in sorted(numbers)]

    def known_wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer] | None:
        """Return what `wanting` returns, or `None` if the answer is not remembered."""
        return self._wanting.find(tokens)

    def wanting(self, tokens: frozenset[Token]) -> Sequence[Consumer]:
        """Return the consumers whose schedule has one of these tokens, ordered by id."""
        try:
            return self._wanting[tokens]
        except KeyError:
            self.load(tokens)
            numbers = set[int]().union(*(self._index[token] for token in tokens))
            self.load_ids(numbers)
            found = [self._consumers[number] for number in sorted(numbers)]
            self._wanting.keep(tokens, found)
            return found

    def save(self, consumer: Consumer) -> None:
        """Save a new or changed consumer."""
        before = self.find(consumer.id)
        self._consumers.keep(consumer.id, consumer)
        before_tokens = before.options.wanted_tokens if before else frozenset[Token]()
        self._reindex(consumer.id, before_tokens, consumer.options.wanted_tokens)
        self._change(consumer.id, before, consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; its receipts and decisions stay."""
        before = self.find(consumer.id)
        self._consumers.forget([consumer.id])
        self._reindex(consumer.id, consumer.options.wanted_tokens, frozenset())
        self._change(consumer.id, before, None)

    def renew(self) -> None:
        """Forget the least recently used entries if there are too many."""
        self._consumers.renew()
        self._index.renew()
        self._wanting.renew()

    def _change(self, number: int, before: Consumer | None, after: Consumer | None) -> None:
        first, _ = self._changes.consumers.get(number, (before, None))
        self._changes.consumers[number] = (first, after)

    def _reindex(self, number: int, before: frozenset[Token], after: frozenset[Token]) -> None:
        # Load before the change: the source answers with the state before this unit of work.
        self.load(before | after)
        self._wanting.forget_all()
        for token in before - after:
            self._index[token].discard(number)
        for token in after - before:
            self._index[token].add(number)
            self._index.grew(60)
