"""Which makers are coming: they run, are asked for, wait, or are about to be started (contract 8.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import mapped_keys, reads_key
from assetflow.core.freshness.records import Moment, Target
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.verdicts import Verdict
from assetflow.core.freshness.walks import reached, work_out

Keys = Mapping[str | None, datetime]
"""The target keys of a consumer that are coming, each with the instant since when it is."""

Verdicts = Mapping[int, Mapping[str | None, Verdict | None]]
"""What was said in a pass, by consumer and target key; `None` of a target that is up to date."""


# The instants of a key that counts in any case, and of one that is asked for only now.
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Coming:
    """The targets that are coming in one pass, worked out once for each consumer. Judge the upper consumers first.

    Parameters:
        verdicts: what was said in this pass so far; of other targets, what was said last counts.
    """

    def __init__(self, book: Book, verdicts: Verdicts) -> None:
        self._book = book
        self._verdicts = verdicts
        self._keys: dict[int, Keys] = {}
        self._expected: list[FlowNode] = []

    def expect(self, nodes: Iterable[FlowNode]) -> None:
        """Read what concerns these consumers together, as soon as something about one of them is asked."""
        self._expected = [*nodes]

    def waits_for(self, node: FlowNode, key: str | None, since: Moment) -> Iterator[Target]:
        """Yield the targets that a target waits for: those that are coming and have not ended a run since a moment.

        A flow without partitions waits for no keys that come after the first one that a maker has made since then: new
        ones may come for ever.
        """
        for uri in node.inputs:
            for maker in self._book.graph.makers(uri):
                if maker.id == node.id:
                    continue
                latest = self._first_made(node, maker, uri, since)
                keys = (made for made, at in self._keys_of(maker).items() if at <= latest)
                coming = [Target(maker.id, made) for made in keys if self._reads(node, key, uri, made)]
                self._book.targets.load(coming)
                yield from (target for target in coming if not self._has_ended(target, since))

    def _first_made(self, node: FlowNode, maker: FlowNode, uri: str, since: Moment) -> datetime:
        """Return when a partitioned maker of a flow without partitions made its first key since a moment."""
        are_many = maker.is_partitioned and not node.is_partitioned
        first = self._book.updates.first_of(uri, since) if are_many else None
        return _LAST if first is None else first.recorded

    def _reads(self, node: FlowNode, key: str | None, uri: str, made: str | None) -> bool:
        """Return True if a target reads this key through its mapper, or an input without keys."""
        if node.is_partitioned:
            belongs = mapped_keys(node, uri, made)
            return made is None if belongs is None else key in belongs
        return reads_key(self._book, node, None, uri, made)

    def _has_ended(self, target: Target, since: Moment) -> bool:
        ended = self._book.targets.find(target).ended
        return ended is not None and ended >= since

    def _keys_of(self, node: FlowNode) -> Keys:
        """Return the target keys of a consumer that are coming."""
        if node.id not in self._keys:
            self._read_ahead(node)
        return work_out(node, _number, self._above, self._coming_of, self._keys)

    def _coming_of(self, node: FlowNode) -> Keys:
        found: dict[str | None, datetime] = {}
        for key, at in (*self._about_to_start(node), *self._active(node)):
            found[key] = min(at, found.get(key, at))
        return found

    def _read_ahead(self, node: FlowNode) -> None:
        """Read at once which runs of the expected consumers and of all above them go on, and what waits there."""
        found = reached([node, *self._expected], lambda each: () if each.id in self._keys else self._above(each))
        self._expected = []
        self._book.runs.load(each.id for each in found)
        self._book.targets.load_waiting(each.id for each in found if each.keeping is not None)

    def _above(self, node: FlowNode) -> Iterator[FlowNode]:
        """Yield the makers whose coming makes a consumer come."""
        if self._follows_data(node):
            for uri in sorted(node.starts):
                yield from (maker for maker in self._book.graph.makers(uri) if maker.id != node.id)

    def _active(self, node: FlowNode) -> Iterator[tuple[str | None, datetime]]:
        """Yield the keys that run, are asked for in this pass or soon, or wait, with the instant since when they do."""
        yield from ((run.target.key, run.asked) for run in self._book.runs.of(node.id))
        if node.keeping is not None:
            said = self._verdicts.get(node.id, {})
            yield from ((key, _LAST) for key, verdict in said.items() if verdict and verdict.name in ("run", "waits"))
            coming = [(target.key, _LAST) for target in self._book.targets.waiting(node.id)]
            if node.is_partitioned:
                coming += ((target.key, _FIRST) for target in self._book.targets.with_verdict("owed", node.id))
                coming += ((key, _FIRST) for key in self._book.keys_set_aside(node.id))
            yield from (each for each in coming if each[0] not in said)

    def _about_to_start(self, node: FlowNode) -> Iterator[tuple[str | None, datetime]]:
        """Yield the keys that an input which is coming will start, with the instant since when that is coming."""
        if self._follows_data(node):
            for uri in sorted(node.starts):
                for maker in self._book.graph.makers(uri):
                    for made, at in self._keys.get(maker.id, {}).items() if maker.id != node.id else ():
                        yield from ((key, at) for key in self._started_by(node, uri, made))

    def _follows_data(self, node: FlowNode) -> bool:
        return node.is_eager and not node.rests and node.keeping is not None and "data" in node.keeping.on

    def _started_by(self, node: FlowNode, uri: str, made: str | None) -> Iterator[str | None]:
        """Yield the target keys that a key of an input will start."""
        if node.is_partitioned:
            belongs = mapped_keys(node, uri, made) or ()
        else:
            belongs = (None,) if reads_key(self._book, node, None, uri, made) else ()
        yield from (key for key in belongs if not self._book.backfills.has(Target(node.id, key)))


def _number(node: FlowNode) -> int:
    return node.id
