"""The outcome of a task: what it said about its outlets, and the updates that it makes (contract 2.1, 2.3 to 2.5).

Real tasks and the simulator both use it, so they follow the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, cast
from uuid import UUID

from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet, check_data_version, distinct, merged
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import canonical_json, check_extra, event_id
from assetflow.errors import InvalidEvent, OutletError, RecordingFailed, TooLarge

# One partition key, several, or several with their data versions.
Keys = str | Iterable[str] | Mapping[str, str]

# Returns the URI that a name belongs to, or None.
ResolveName = Callable[[str], str | None]

# Threads of one task may say something at the same time. It is not an attribute, so that an outcome can be pickled.
_MERGING = Lock()


@dataclass(frozen=True)
class Update:
    """One update that a completed task made: an event without its origin and its time.

    Attributes:
        asset: the asset as the outlet declares it, or as the task added it to an alias.
        aliases: the aliases that it came through, sorted; empty for an ordinary outlet.
    """

    asset: Asset
    extra: Mapping[str, object]
    partition_key: str | None = None
    aliases: tuple[str, ...] = ()
    data_version: str | None = None

    def event_id(self, task_run_id: UUID | str) -> UUID:
        """Return the id of the update's event: the same for each attempt with the same content. Contract 2.1."""
        return event_id(
            task_run_id,
            self.asset.uri,
            self.partition_key,
            self.extra,
            aliased=bool(self.aliases),
            data_version=self.data_version,
        )


class _Added(NamedTuple):
    """An update that was added to aliases: the asset, its extra as JSON text, its data version."""

    uri: str
    extra: str
    data_version: str | None


class _Extra(dict[str, object]):
    """The extra of an outlet. Each value is checked at the line that sets it. Contract 2.7."""

    def __init__(self, target: Asset | AssetRef, extra: object = None) -> None:
        super().__init__(_checked(extra, target))
        self._target = target

    def __setitem__(self, key: str, value: object) -> None:
        self.update({key: value})

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *extra: Any, **more: object) -> None:
        super().update(_checked(dict(*extra, **more), self._target))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Extra, (self._target, dict(self))


@dataclass
class _Said:
    """The keys and the version that a task has given for one outlet so far.

    Attributes:
        keys: the partitions that it named, each with its data version; `None` if the outlet is updated as a whole.
        version: the data version of the outlet.
    """

    extra: _Extra
    keys: dict[str, str | None] | None = None
    version: str | None = None


class TaskOutcome:
    """The updates that one attempt of a task reports. Each attempt starts with none. Contract 2.3.

    Parameters:
        outlets: the assets, references and aliases that the task declares, in order.
        resolve_name: returns the URI of a name, or `None`; called at most once for each name (1.6).
    """

    def __init__(self, outlets: Iterable[Outlet], resolve_name: ResolveName = lambda _: None) -> None:
        self.outlets = tuple(outlets)
        self._outlets = [outlet for outlet in self.outlets if not isinstance(outlet, AssetAlias)]
        self._aliases = {outlet.name for outlet in self.outlets if isinstance(outlet, AssetAlias)}
        self._resolve_name = resolve_name
        self._resolved: dict[str, str | None] = {}
        self._said: dict[Token, _Said] = {}
        self._added: dict[_Added, tuple[Asset, Mapping[str, object], frozenset[str]]] = {}

    def say(
        self, target: Asset | AssetRef, extra: Mapping[str, object] | None = None, *, data_version: str | None = None
    ) -> None:
        """Merge an extra into that of an outlet, key by key: `yield Metadata(asset, extra)`.

        Raises:
            OutletError: the asset is not an outlet of the task.
            RecordingFailed: the extra holds what an update may not hold (2.7).
            InvalidEvent: the data version is not one (8.2).
        """
        self._of(target).extra.update(_checked(extra, target))
        if data_version is not None:
            self.set_version(target, data_version)

    def set_version(self, target: Asset | AssetRef, version: str | None) -> None:
        """Say which data version an outlet has: `outlet_events[asset].data_version = version`. Raises as `say`."""
        self._of(target).version = _version(version, target)

    def version_of(self, target: Asset | AssetRef) -> str | None:
        """Return the data version of an outlet, `None` if the task has given none. Raises `OutletError` as `say`."""
        return self._of(target).version

    def assign(self, target: Asset | AssetRef, extra: Mapping[str, object] | None) -> None:
        """Replace the extra of an outlet: `outlet_events[asset].extra = extra`. Raises as `say`."""
        self._of(target).extra = _Extra(target, extra)

    def extra_of(self, target: Asset | AssetRef) -> dict[str, object]:
        """Return the extra of an outlet, which the caller may change. Raises `OutletError` as `say` does."""
        return self._of(target).extra

    def add(
        self,
        alias: AssetAlias | str,
        asset: Asset,
        extra: Mapping[str, object] | None = None,
        *,
        data_version: str | None = None,
    ) -> None:
        """Update an asset through an alias: `outlet_events[alias].add(asset, extra)`. Contract 2.4.

        If the same asset is added with the same extra and data version to several aliases, that is one update with all
        of them.

        Raises:
            OutletError: the alias is not an outlet of the task.
            RecordingFailed: the extra holds what an update may not hold (2.7).
            InvalidEvent: the data version is not one (8.2).
        """
        name = self.check_alias(alias)
        checked = _checked(extra, asset)
        added = _Added(asset.uri, canonical_json(checked), _version(data_version, asset))
        with _MERGING:
            first, told, aliases = self._added.get(added, (asset, checked, frozenset[str]()))
            self._added[added] = (merged(first, asset), told, aliases | {name})

    def add_partitions(self, target: Asset | AssetRef, keys: Keys, *, data_version: str | None = None) -> None:
        """Name the partitions of an outlet that were updated, instead of the run's own. Contract 2.5.

        An empty list changes nothing: the update keeps the run's key.

        Parameters:
            keys: one key, several, or several with their data versions.
            data_version: the data version of keys that come without one.

        Raises:
            OutletError: the asset is not an outlet of the task.
            InvalidEvent: a key is not a text, is blank, or is longer than 250 characters; or a data version is not one
                (8.2).
        """
        said = self._of(target)
        version = _version(data_version, target)
        added = {
            key: version if own is None else check_data_version(own, f"data_version of {key!r}", where=target.label)
            for key, own in _keys(target, keys).items()
        }
        if added:
            with _MERGING:
                known = said.keys or {}
                said.keys = known | {key: own or known.get(key) for key, own in added.items()}

    def update_partitions_only(self, target: Asset | AssetRef) -> None:
        """Say that only partitions of an outlet are updated: those that are named, and nothing if none is named.

        Raises `OutletError` as `say` does. Contract 2.5.
        """
        said = self._of(target)
        with _MERGING:
            said.keys = said.keys or {}

    def check_outlet(self, target: Asset | AssetRef) -> None:
        """Raise `OutletError` unless the asset is an outlet of the task. Contract 2.3."""
        self._of(target)

    def check_alias(self, alias: AssetAlias | str) -> str:
        """Return the name of an alias; raise `OutletError` unless it is an outlet of the task. Contract 2.3."""
        name = alias.name if isinstance(alias, AssetAlias) else alias
        if name not in self._aliases:
            raise OutletError(
                f"the alias {name!r} is not an outlet of the task",
                rule="2.4",
                fix=f"Add AssetAlias({name!r}) to the task's outlets",
            )
        return name

    def updates(self, partition_key: str | None = None) -> list[Update]:
        """Return the updates of a completed task, in the order in which they are recorded. Contract 2.1.

        First come the assets and references in the order of the outlets, each asset once, with one update for each of
        its keys. Then come the assets that were added to aliases, in the order in which they were added. A reference to
        an unknown name makes no update.

        Parameters:
            partition_key: the run's own key, which an update has unless the task named others for it.

        Raises:
            RecordingFailed: an extra holds what an update may not hold (2.7).
            InvalidEvent: the run's key is not a valid partition key (2.5).
        """
        run_key = None if partition_key is None else check_key(partition_key)
        found: list[Update] = []
        for asset in self._declared().values():
            said = self._said_of(asset)
            extra = _checked(said.extra, asset)
            keys = {run_key: None} if said.keys is None else said.keys
            found += [Update(asset, extra, key, data_version=own or said.version) for key, own in keys.items()]
        found += [
            Update(asset, extra, run_key, tuple(sorted(aliases)), added.data_version)
            for added, (asset, extra, aliases) in self._added.items()
        ]
        return found

    def unchanged(self, partition_key: str | None = None) -> list[Update]:
        """Return the updates that a completed task did not have to make: of outlets without one partition to write."""
        declared = self._declared().values()
        return [Update(each, {}, partition_key) for each in declared if self._said_of(each).keys == {}]

    def unknown_names(self) -> list[str]:
        """Return the names of the outlets that belong to no asset, which get no update. Contract 2.1."""
        tokens = [self._token(outlet) for outlet in self._outlets]
        return [token.value for token in dict.fromkeys(tokens) if token.kind == "name"]

    def _declared(self) -> dict[str, Asset]:
        """Return the assets of the outlets by URI, in order; an `Asset` outlet counts before a reference to it."""
        assets = {each.uri: each for each in distinct(self._outlets) if isinstance(each, Asset)}
        tokens = dict.fromkeys(self._token(outlet) for outlet in self._outlets)
        return {uri: assets[uri] if uri in assets else Asset(uri=uri) for kind, uri in tokens if kind == "uri"}

    def _said_of(self, asset: Asset) -> _Said:
        return self._said.get(asset.token) or _Said(_Extra(asset))

    def _of(self, target: Asset | AssetRef) -> _Said:
        token = self._token(target)
        if token not in self._said and not any(
            outlet.token == token or self._token(outlet) == token for outlet in self._outlets
        ):
            raise OutletError(
                f"{target!r} is not an outlet of the task", rule="2.3", fix=f"Add {target!r} to the task's outlets"
            )
        # Another thread of the task may have said something of it meanwhile.
        return self._said.setdefault(token, _Said(_Extra(target)))

    def _token(self, target: Asset | AssetRef) -> Token:
        """Return the key of `_said` for a target: its URI, or its name if that belongs to no URI."""
        token = target.token
        if token.kind == "uri":
            return token
        if token.value not in self._resolved:
            self._resolved[token.value] = self._resolve_name(token.value)
        uri = self._resolved[token.value]
        return token if uri is None else Token("uri", uri)


def _keys(target: Asset | AssetRef, keys: Keys) -> dict[str, str | None]:
    """Return the keys, checked, each with the data version that comes with it."""
    if not isinstance(cast("object", keys), str | Iterable):
        raise InvalidEvent(
            f"the partition keys of {target.label} are {keys!r}", rule="2.5", fix="Give a text or a list of texts"
        )
    if isinstance(keys, Mapping):
        return {check_key(key): version for key, version in cast("Mapping[str, str]", keys).items()}
    return {check_key(key): None for key in ([keys] if isinstance(keys, str) else keys)}


def _version(version: object, target: Asset | AssetRef) -> str | None:
    return None if version is None else check_data_version(version, where=target.label)


def _checked(extra: object, target: Asset | AssetRef) -> dict[str, object]:
    try:
        return check_extra(extra)
    except (InvalidEvent, TooLarge) as error:
        message = f"the update of {target.label} cannot be recorded: {error.message}"
        raise RecordingFailed(message, fix=error.fix, rule=error.rule) from error
