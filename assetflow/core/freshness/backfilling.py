"""Backfill an asset, and what lies below it: targets, waves, and what comes next (contract 8.18)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import mapped_keys, reads_key
from assetflow.core.freshness.records import Run, RunState, Target
from assetflow.core.freshness.state.backfills import GOES_ON, Backfill
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.touching import all_keys
from assetflow.errors import InvalidCall

_NAMESPACE = UUID("c0b0d7f2-3f0e-5a67-9d2c-8e2f6a1b4d90")

Above = dict[Target, Collection[Target]]


def targets_of(book: Book, uri: str, keys: Sequence[str] | None, *, down: bool) -> Above:
    """Return the targets of a backfill, upper ones first, each with those that have to be done before it.

    Parameters:
        uri: the asset whose maker runs.
        keys: the target keys of the maker; None for all known ones.
        down: whether the targets below run too.

    Raises:
        InvalidCall: nothing makes the asset, or keys are given for a flow without partitions.
    """
    maker = book.graph.maker(uri)
    if maker is None:
        raise InvalidCall(f"nothing makes {uri}", rule="8.18", fix="Name an asset that a deployed flow makes")
    if keys is not None and not maker.is_partitioned:
        raise InvalidCall(f"{maker.consumer.name} has no partitions", rule="8.18", fix="Leave the keys out")
    first = [*dict.fromkeys(keys)] if keys is not None else all_keys(book, maker)
    found: Above = {Target(maker.id, key): () for key in first}
    numbers = _numbers_below(book, maker) if down else ()
    for node in book.graph.parents_first(numbers):
        if node.id != maker.id:
            found |= _targets_below(book, node, found)
    return found


def waves_of(book: Book, above: Above) -> list[list[Target]]:
    """Return the targets in waves: each runs when those of the waves before are done."""
    wave: dict[Target, int] = {}
    for target, before in above.items():
        wave[target] = max((wave[each] + 1 for each in before), default=0)
    waves: list[list[Target]] = [[] for _ in range(max(wave.values(), default=-1) + 1)]
    for target in in_order(book, above):
        waves[wave[target]].append(target)
    return waves


def in_order(book: Book, targets: Iterable[Target]) -> list[Target]:
    """Return targets by the name of their consumer and by key."""
    return sorted(targets, key=lambda target: (_name(book, target), target.key or ""))


def run_id(backfill: Backfill, deployment_id: UUID, key: str | None) -> UUID:
    """Return the id of the decision for a target of a backfill, so that it runs once whatever crashes."""
    return uuid5(_NAMESPACE, f"backfill|{backfill.number}|{backfill.made.isoformat()}|{deployment_id}|{key or ''}")


def ready(book: Book, backfill: Backfill) -> list[Target]:
    """Return the targets of a backfill that run next."""
    found = [target for target in in_order(book, backfill.ready()) if not book.runs.is_busy(target)]
    return found if backfill.concurrency is None else found[: max(0, backfill.concurrency - backfill.asked)]


def note_end(book: Book, run: Run, state: RunState) -> None:
    """Note in the backfills that a run of theirs ended; a failure takes off what is below it."""
    node = book.graph.find(run.target.consumer)
    for backfill in book.backfills.open() if run.kind == "backfill" else ():
        if node is not None and run.id == run_id(backfill, node.consumer.deployment_id, run.target.key):
            _end(book, backfill, run.target, done=state == "completed")


def _end(book: Book, backfill: Backfill, target: Target, *, done: bool) -> None:
    freed = [target] if done else [target, *backfill.below(target)]
    if done:
        book.backfills.save(backfill.with_states({target: "done"}))
    else:
        book.backfills.save(backfill.with_states({target: "failed", **dict.fromkeys(freed[1:], "removed")}))
    for each in freed:
        book.agenda.add(each)


def take_off(book: Book, consumer: int) -> None:
    """Take the targets of a removed consumer off the backfills, and what is below them."""
    for backfill in book.backfills.open():
        gone = [each for each in backfill.above if each.consumer == consumer]
        off = dict.fromkeys([*gone, *(below for each in gone for below in backfill.below(each))])
        left = [each for each in off if backfill.state_of(each) in GOES_ON]
        if left:
            book.backfills.save(backfill.with_states(dict.fromkeys(left, "removed")))


def begin_backfill(book: Book, above: Above, number: int, now: datetime, concurrency: int | None = None) -> Backfill:
    """Begin a backfill."""
    backfill = Backfill(number, now, above, concurrency=concurrency)
    book.backfills.save(backfill)
    return backfill


def _numbers_below(book: Book, maker: FlowNode) -> Collection[int]:
    """Return the flows below that a backfill runs: not those with event schedules, nor what only they feed."""
    found = {maker.id: None}
    waiting = [maker]
    while waiting:
        node = waiting.pop()
        for uri in node.outputs:
            for reader in book.graph.readers(uri):
                if reader.id not in found and reader.consumer.schedule.condition is None:
                    found[reader.id] = None
                    waiting.append(reader)
    return found


def _targets_below(book: Book, node: FlowNode, found: Above) -> Above:
    """Return the targets of a flow that read targets of a backfill, each with those."""
    above: dict[Target, dict[Target, None]] = {}
    for target in found:
        maker = book.graph.find(target.consumer)
        for uri in node.inputs if maker is not None and maker.id != node.id else ():
            if maker is not None and uri in maker.outputs:
                for key in _keys_below(book, node, uri, target.key):
                    above.setdefault(Target(node.id, key), {})[target] = None
    return {target: tuple(before) for target, before in above.items()}


def _keys_below(book: Book, node: FlowNode, uri: str, key: str | None) -> Collection[str | None]:
    keys = mapped_keys(node, uri, key)
    if keys is None:
        return [each for each in all_keys(book, node) if reads_key(book, node, each, uri, key)]
    return [each for each in keys if reads_key(book, node, each, uri, key)]


def _name(book: Book, target: Target) -> str:
    node = book.graph.find(target.consumer)
    return "" if node is None else node.consumer.name
