"""Find what a target reads, what it misses, and to which targets an item belongs: the one place for rule 8.3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.records import Inputs, Item, ItemUpdate, Target
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.partitions import (
    EveryTargetMapper,
    KeysMapper,
    LastMapper,
    PartitionMapper,
    RollupMapper,
    StaticMapper,
    TimeWindowMapper,
)
from assetflow.core.partitions.base import targets_or_none
from assetflow.core.values.keeping import Cause
from assetflow.errors import MappingError


def items_read(freshness: FreshnessState, node: FlowNode, key: str | None, uri: str) -> Iterator[Item]:
    """Yield the items of an input that a target reads, the one without a key first.

    Parameters:
        key: the target key; `None` for the target of a plain flow.
    """
    yield from _items_of(freshness, node, node.mappers.get(uri), key, uri)


def items_then(
    freshness: FreshnessState, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str, place: int
) -> Iterator[Item]:
    """Yield the items of an input that a target would have read by an earlier mapper, then and since then.

    Parameters:
        mapper: the earlier mapper; `None` if the input was read whole.
        place: up to where in the ledger the input was read.
    """
    if isinstance(mapper, LastMapper):
        found = freshness.updates.greatest_keys_that(
            uri, mapper.n, lambda item: freshness.updates.as_of(item, place) is not None
        )
        yield from (Item(uri, each) for each in found)
    else:
        yield from _items_of(freshness, node, mapper, key, uri)


def items_changed(freshness: FreshnessState, node: FlowNode, key: str | None, uri: str, after: int) -> Iterator[Item]:
    """Yield the items of an input that a target reads and that were updated after a place in the ledger."""
    mapper = node.mappers.get(uri)
    if mapper is None and not node.is_partitioned:
        yield from freshness.updates.changed(uri, after)
        return
    for item in items_read(freshness, node, key, uri):
        newest = freshness.updates.newest(item)
        if newest is not None and newest.sequence > after:
            yield item


def missing_items(freshness: FreshnessState, node: FlowNode, key: str | None, uri: str) -> list[Item]:
    """Return what a target misses of an input: awaited keys, or the asset as a whole. Contract 8.3.

    Parameters:
        key: the target key; `None` for the target of a plain flow.
    """
    mapper = node.mappers.get(uri)
    if isinstance(mapper, RollupMapper):
        return [] if key is None else _missing_of_rollup(freshness, mapper, Target(node.id, key), uri)
    awaited = _awaited(mapper, key)
    if awaited is None:
        return [] if next(items_read(freshness, node, key, uri), None) is not None else [Item(uri)]
    missing = [item for each in awaited if freshness.updates.newest(item := Item(uri, each)) is None]
    # An item without a key counts for all keys until the first update with a key.
    is_whole = len(missing) == len(awaited) and freshness.updates.newest(Item(uri)) is not None
    return [] if is_whole else missing


def target_keys(node: FlowNode, uri: str, key: str | None) -> Collection[str | None] | None:
    """Return the target keys to which a key of an input belongs; `None` if it belongs to every target.

    Raises:
        MappingError: the mapper cannot read the key (5.4).
    """
    if not node.is_partitioned:
        return (None,)
    mapper = node.mappers.get(uri)
    if key is None or mapper is None or isinstance(mapper, EveryTargetMapper):
        return None
    return mapper.to_downstream(key)


def mapped_keys(node: FlowNode, uri: str, key: str | None) -> Collection[str | None] | None:
    """Return what `target_keys` returns, and no keys where the mapper fails."""
    try:
        return target_keys(node, uri, key)
    except MappingError:
        return ()


def reads_key(freshness: FreshnessState, node: FlowNode, target_key: str | None, uri: str, key: str | None) -> bool:
    """Return True if a target reads a key of an input, or would read it once it is there."""
    mapper = node.mappers.get(uri)
    if key is not None and isinstance(mapper, EveryTargetMapper):
        known = [*freshness.updates.greatest_keys(uri, mapper.n), key] if isinstance(mapper, LastMapper) else [key]
        return key in mapper.chosen(sorted(set(known)))
    belongs = mapped_keys(node, uri, key)
    return belongs is None or target_key in belongs


def _items_of(
    freshness: FreshnessState, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str
) -> Iterator[Item]:
    whole = Item(uri)
    if not isinstance(mapper, LastMapper) and freshness.updates.newest(whole) is not None:
        yield whole
    for each in _keys_read(freshness, node, mapper, key, uri):
        yield Item(uri, each)


def _keys_read(
    freshness: FreshnessState, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str
) -> Collection[str]:
    if isinstance(mapper, LastMapper):
        return freshness.updates.greatest_keys(uri, mapper.n)
    if isinstance(mapper, KeysMapper):
        return [each for each in mapper.keys if freshness.updates.newest(Item(uri, each)) is not None]
    if isinstance(mapper, EveryTargetMapper) or mapper is None:
        return freshness.updates.keys(uri)
    if key is None:
        return ()
    if mapper == node.mappers.get(uri):
        return freshness.readings.keys(Target(node.id, key), uri)
    return [each for each in freshness.updates.keys(uri) if key in targets_or_none(mapper, each)]


def _missing_of_rollup(freshness: FreshnessState, mapper: RollupMapper, target: Target, uri: str) -> list[Item]:
    """Return the awaited keys that are not there, if those that are do not meet the wait policy."""
    there = freshness.readings.keys(target, uri)
    if target.key is None or mapper.is_met(target.key, there):
        return []
    try:
        awaited = mapper.awaited(target.key)
    except MappingError:
        return [Item(uri)]
    return [Item(uri, key) for key in sorted(awaited.difference(there))]


def _awaited(mapper: PartitionMapper | None, key: str | None) -> Collection[str] | None:
    """Return the keys that a target waits for; `None` if any item is enough."""
    if isinstance(mapper, KeysMapper):
        return mapper.keys
    if key is None or not isinstance(mapper, TimeWindowMapper | StaticMapper):
        return None
    try:
        return mapper.awaited(key)
    except MappingError:
        return ()


@dataclass(frozen=True)
class ComparedUpdate:
    """The update that an output is compared with (8.5), and what it is made from.

    Attributes:
        reads: each input that it was made from, with the place in the ledger up to which that was read.
    """

    update: ItemUpdate
    reads: Mapping[str, int]


def base_of(freshness: FreshnessState, node: FlowNode, item: Item) -> ComparedUpdate | None:
    """Return the update that an output of a flow is compared with; `None` if nothing has updated the output."""
    depends = node.outputs[item.uri]
    is_whole = item.key is None and not node.is_partitioned
    for update in freshness.updates.of_asset(item.uri) if is_whole else freshness.updates.history(item):
        if update.pins is None:
            return ComparedUpdate(update, dict.fromkeys(depends, update.sequence))
        if update.consumer == node.id or depends <= update.pins.keys():
            return ComparedUpdate(update, update.pins)
    return None


def newest_made(freshness: FreshnessState, node: FlowNode, item: Item) -> ItemUpdate | None:
    """Return the newest update of an output of a target; a plain flow may give it keys. Contract 8.5.

    Parameters:
        item: the output, with the target key; or a single key of what a plain flow makes.
    """
    is_whole = item.key is None and not node.is_partitioned
    return freshness.updates.newest_of(item.uri) if is_whole else freshness.updates.newest(item)


def causes_of(freshness: FreshnessState, node: FlowNode, item: Item) -> Iterator[Cause]:
    """Yield why an output of a flow is out of date; nothing if it is fresh. Contract 8.9.

    Parameters:
        item: the output, with the target key of the run that makes it.
    """
    if newest_made(freshness, node, item) is None:
        yield Cause("missing", item.uri)
        return
    depends = node.outputs[item.uri]
    base = base_of(freshness, node, item)
    code_version = node.code_versions[item.uri]
    has_same_code = base is not None and (base.update.is_from_outside or base.update.code_version == code_version)
    if code_version is not None and not has_same_code:
        yield Cause("code")
    reads: Mapping[str, int] = {} if base is None else base.reads
    for uri in sorted(depends):
        if uri not in reads:
            yield Cause("dependency", uri)
        else:
            yield from (Cause("data", *each) for each in unread(freshness, node, item.key, uri, reads[uri]))
    if base is not None and base.update.consumer == node.id:
        yield from (Cause("dependency", uri) for uri in sorted(reads.keys() - depends))


def unread(freshness: FreshnessState, node: FlowNode, key: str | None, uri: str, after: int) -> Iterator[Item]:
    """Yield the items of an input whose version differs from the one that was read.

    Parameters:
        key: the target key.
        after: the place in the ledger up to which the input was read.
    """
    for item in items_changed(freshness, node, target_key_of(node, key), uri, after):
        newest = freshness.updates.newest(item)
        if newest is not None and freshness.updates.is_unread(newest, after):
            yield item


def target_key_of(node: FlowNode, key: str | None) -> str | None:
    """Return the target key of the run that makes a key of an output."""
    return key if node.is_partitioned else None


def inputs_now(freshness: FreshnessState, node: FlowNode) -> Inputs:
    """Return the inputs that a run beginning now would try."""
    return Inputs(freshness.place(), node.code_versions, {uri: node.mappers.get(uri) for uri in node.inputs})


def is_same(freshness: FreshnessState, node: FlowNode, key: str | None, tried: Inputs) -> bool:
    """Return True if a target would try the same inputs again now.

    Parameters:
        key: the target key.
    """
    return _are_of_same_flow(freshness, node, key, tried, inputs_now(freshness, node)) and not any(
        True for _ in _changed(freshness, node, key, tried.sequence, None)
    )


def are_same(freshness: FreshnessState, node: FlowNode, key: str | None, before: Inputs, after: Inputs) -> bool:
    """Return True if two runs of a target tried the same inputs."""
    return _are_of_same_flow(freshness, node, key, before, after) and not any(
        True for _ in _changed(freshness, node, key, before.sequence, after.sequence)
    )


def is_changed(freshness: FreshnessState, node: FlowNode, key: str | None, uri: str, after: int, until: int) -> bool:
    """Return True if items of an input that start runs of a target changed between two places in the ledger."""
    return next(_changed_of(freshness, node, key, uri, after, until), None) is not None


def starts_runs(node: FlowNode, item: Item) -> bool:
    """Return True if a new version of an item of an input may start a run (8.4)."""
    if item.uri not in node.starts:
        return False
    return not node.is_partitioned or (item.key is not None and node.is_read_by_key(item.uri))


def newest_that_start(freshness: FreshnessState, node: FlowNode, key: str | None) -> Iterator[str]:
    """Yield the ids of the newest updates of what starts runs of a target; of an asset that is read whole, of all."""
    for uri in sorted(node.starts):
        if node.is_partitioned:
            items = (item for item in items_read(freshness, node, key, uri) if starts_runs(node, item))
            found = [freshness.updates.newest(item) for item in items]
        else:
            found = [freshness.updates.newest_of(uri)]
        yield from sorted(str(update.event) for update in found if update is not None)


def _are_of_same_flow(
    freshness: FreshnessState, node: FlowNode, key: str | None, before: Inputs, after: Inputs
) -> bool:
    """Return True if a target had the same code and inputs, and by another mapper would have read the same items."""
    if (before.code_versions, before.reads.keys()) != (after.code_versions, after.reads.keys()):
        return False
    others = ((uri, mapper) for uri, mapper in before.reads.items() if mapper != after.reads[uri])
    return all(
        _then(freshness, node, mapper, key, uri, before.sequence)
        == _then(freshness, node, after.reads[uri], key, uri, before.sequence)
        for uri, mapper in others
    )


def _then(
    freshness: FreshnessState, node: FlowNode, mapper: PartitionMapper | None, key: str | None, uri: str, place: int
) -> set[Item]:
    items = items_then(freshness, node, mapper, key, uri, place)
    return {item for item in items if freshness.updates.as_of(item, place) is not None}


def _changed(
    freshness: FreshnessState, node: FlowNode, key: str | None, after: int, until: int | None
) -> Iterator[Item]:
    """Yield the items that start runs and have another version than at an earlier place in the ledger.

    Parameters:
        until: the later place; `None` for the newest one.
    """
    for uri in sorted(node.starts):
        yield from _changed_of(freshness, node, key, uri, after, until)


def _changed_of(
    freshness: FreshnessState, node: FlowNode, key: str | None, uri: str, after: int, until: int | None
) -> Iterator[Item]:
    for item in items_changed(freshness, node, key, uri, after):
        if starts_runs(node, item):
            before = freshness.updates.as_of(item, after)
            now = freshness.updates.newest(item) if until is None else freshness.updates.as_of(item, until)
            if (before and before.data_version) != (now and now.data_version):
                yield item


FEW = 8


def read_ahead(freshness: FreshnessState, node: FlowNode, keys: Collection[str | None]) -> None:
    """Read what is remembered of targets of a flow, and the newest updates of what they make and read by key.

    Parameters:
        keys: the target keys; for a few, nothing is read ahead.
    """
    if len(keys) <= FEW:
        return
    targets = [Target(node.id, key) for key in keys]
    freshness.targets.load(targets)
    for uri in node.outputs:
        freshness.updates.load(Item(uri, key) for key in keys)
    freshness.readings.load(node.id, targets)
    for uri in node.inputs:
        freshness.updates.load(Item(uri, each) for target in targets for each in freshness.readings.keys(target, uri))


def touch_item(freshness: FreshnessState, item: Item, *, is_new: bool) -> None:
    """Put the targets that read or make an item on the agenda.

    Parameters:
        is_new: the item was never updated before, so that it may make targets.
    """
    freshness.agenda.assets[item.uri] = None
    for node in freshness.graph.readers(item.uri):
        freshness.agenda.flows[node.id] = None
        keys = mapped_keys(node, item.uri, item.key)
        if is_new and item.key is not None and node.is_partitioned and keys is not None:
            _index(freshness, node, item.uri, item.key)
        if node.keeping is None:
            continue
        if keys is None:
            _touch_missing(freshness, node)
        else:
            for key in keys:
                freshness.agenda.add(Target(node.id, key))
    for node in freshness.graph.makers(item.uri):
        target = Target(node.id, item.key if node.is_partitioned else None)
        if is_new and node.is_partitioned:
            freshness.readings.add_target(target)
        freshness.agenda.flows[node.id] = None
        if node.keeping is not None:
            freshness.agenda.add(target)


def touch_flow(freshness: FreshnessState, node: FlowNode, now: datetime) -> None:
    """Put all targets of a flow on the agenda; of very many, the greatest keys: the clock judges the others later."""
    freshness.agenda.flows[node.id] = None
    if node.keeping is None:
        return
    for key in _first_keys(freshness, node, now):
        freshness.agenda.add_catching_up(Target(node.id, key))


def _first_keys(freshness: FreshnessState, node: FlowNode, now: datetime) -> Sequence[str | None]:
    """Return the target keys of a flow to judge in this pass, and set the others aside."""
    if freshness.most_judged is None or not node.is_partitioned:
        return all_keys(freshness, node)
    keys = freshness.readings.greatest(node.id, freshness.most_judged)
    if len(keys) == freshness.most_judged:
        freshness.targets.set_aside(node.id, frozenset(keys), now)
    return keys


def all_keys(freshness: FreshnessState, node: FlowNode) -> list[str | None]:
    """Return the target keys of a flow, sorted; `None` for a plain one."""
    return [*freshness.readings.targets(node.id)] if node.is_partitioned else [None]


def index_flow(freshness: FreshnessState, node: FlowNode) -> None:
    """Fill the index of targets of a partitioned flow that is new or has other mappers."""
    freshness.readings.forget(node.id)
    if not node.is_partitioned:
        return
    for uri in node.inputs:
        if not isinstance(node.mappers.get(uri), EveryTargetMapper):
            for key in freshness.updates.keys(uri):
                _index(freshness, node, uri, key)
    for uri in node.outputs:
        for key in freshness.updates.keys(uri):
            freshness.readings.add_target(Target(node.id, key))


def _index(freshness: FreshnessState, node: FlowNode, uri: str, key: str) -> None:
    keys = [each for each in mapped_keys(node, uri, key) or () if each is not None]
    freshness.readings.add(node.id, uri, key, keys, makes_targets=uri not in node.outputs)


def _touch_missing(freshness: FreshnessState, node: FlowNode) -> None:
    """Put the targets that miss an input on the agenda: the new item, which every target reads, may be that input."""
    for target in freshness.targets.with_verdict("missing_input", node.id):
        freshness.agenda.add(target)
