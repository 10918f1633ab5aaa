"""Which items belong to which target of a partitioned consumer: the index in both directions (contract 8.3)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource


class Readings:
    """The target keys of partitioned consumers, and the keys of their inputs that map to each."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._keys: dict[tuple[Target, str], dict[str, None]] = {}
        self._targets: dict[int, dict[str, None]] = {}
        self._sorted: dict[int, list[str]] = {}
        self._loaded: dict[Target, dict[str, list[str]]] = {}

    def load(self, consumer: int, targets: Iterable[Target]) -> None:
        """Read the keys of all inputs that map to these targets of a consumer, as far as they are not known."""
        missing = [each for each in targets if each.key is not None and each not in self._loaded]
        if missing and not self._is_forgotten(consumer):
            self._loaded |= {target: {} for target in missing}
            found = self._source.readings_of(consumer, [target.key for target in missing if target.key is not None])
            for target_key, uri, key in found:
                self._loaded[Target(consumer, target_key)].setdefault(uri, []).append(key)

    def add(self, consumer: int, uri: str, key: str, targets: Iterable[str], *, makes_targets: bool = True) -> None:
        """Remember to which targets a new key of an input maps.

        Parameters:
            makes_targets: the keys of own outputs that are read do not make targets; but their own keys do.
        """
        for target_key in targets:
            target = Target(consumer, target_key)
            self._keys.setdefault((target, uri), {})[key] = None
            self._changes.readings.append((target, uri, key))
            if makes_targets:
                self.add_target(target)

    def add_target(self, target: Target) -> None:
        """Remember that there is a target."""
        known = self._targets.setdefault(target.consumer, {})
        if target.key is not None and target.key not in known:
            known[target.key] = None
            self._changes.target_keys[target] = None
            insort(self._sorted.setdefault(target.consumer, []), target.key)

    def keys(self, target: Target, uri: str) -> Collection[str]:
        """Return the keys of an input that map to a target."""
        stored = () if self._is_forgotten(target.consumer) else self._stored(target, uri)
        own = self._keys.get((target, uri), {})
        return {**dict.fromkeys(stored), **own} if stored else own

    def targets(self, consumer: int) -> Sequence[str]:
        """Return all target keys of a consumer, sorted."""
        stored = () if self._is_forgotten(consumer) else self._source.target_keys(consumer)
        own = self._sorted.get(consumer, [])
        return sorted({*own, *stored}) if stored else own

    def has(self, target: Target) -> bool:
        """Return True if a partitioned consumer has a target."""
        stored = not self._is_forgotten(target.consumer) and self._source.has_target(target)
        return stored or target.key in self._targets.get(target.consumer, ())

    def count(self, consumer: int) -> int:
        """Return how many targets a consumer has."""
        known = consumer in self._sorted or self._is_forgotten(consumer)
        return len(self.targets(consumer)) if known else self._source.count_targets(consumer)

    def greatest(self, consumer: int, most: int) -> Sequence[str]:
        """Return the greatest target keys of a consumer, sorted."""
        stored = () if self._is_forgotten(consumer) else self._source.target_keys(consumer, most)
        found = {*self._sorted.get(consumer, ())[-most:], *stored}
        return sorted(found)[-most:]

    def forget(self, consumer: int) -> None:
        """Forget the targets of a consumer, because its mappers change or it is gone."""
        self._targets.pop(consumer, None)
        self._sorted.pop(consumer, None)
        for place in [place for place in self._keys if place[0].consumer == consumer]:
            del self._keys[place]
        changes = self._changes
        changes.forgotten[consumer] = None
        changes.readings = [each for each in changes.readings if each[0].consumer != consumer]
        changes.target_keys = {each: None for each in changes.target_keys if each.consumer != consumer}

    def renew(self) -> None:
        """Forget everything: it is in the source now, and other processes may add to it."""
        self._keys.clear()
        self._targets.clear()
        self._sorted.clear()
        self._loaded.clear()

    def _stored(self, target: Target, uri: str) -> Collection[str]:
        loaded = self._loaded.get(target)
        return self._source.readings(target, uri) if loaded is None else loaded.get(uri, ())

    def _is_forgotten(self, consumer: int) -> bool:
        return consumer in self._changes.forgotten
