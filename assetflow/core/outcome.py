"""What a task said about its outlets, and the updates that follow when it completes (contract 2.1 and 2.3 to 2.5).

Real tasks and the simulator both collect what is said here, so that neither knows a rule that the other does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import Token
from assetflow.core.events import canonical_json, check_extra, event_id
from assetflow.core.partitions import check_key
from assetflow.errors import InvalidEvent, OutletError

# The URI that a name belongs to, or none.
ResolveName = Callable[[str], str | None]


@dataclass(frozen=True)
class Update:
    """One update that a completed task made: an event that lacks only its origin and its time.

    Attributes:
        asset: as the outlet (or what was added to the alias) declares it.
        aliases: the aliases that it came through, sorted; empty for an ordinary outlet.
    """

    asset: Asset
    extra: Mapping[str, object]
    partition_key: str | None = None
    aliases: tuple[str, ...] = ()

    def event_id(self, task_run_id: UUID | str) -> UUID:
        """The id of its event: the same for each attempt of the task run that says the same (2.1)."""
        return event_id(task_run_id, self.asset.uri, self.partition_key, self.extra, aliased=bool(self.aliases))


@dataclass
class _Said:
    """What was said about one outlet so far."""

    extra: dict[str, object] = field(default_factory=dict[str, object])
    keys: dict[str, None] | None = None


class TaskOutcome:
    """Collects what one attempt of a task says about its outlets; each attempt starts with a new one (2.3).

    Parameters:
        outlets: the assets, references and aliases that the task declares, in order.
        resolve_name: finds the URI of a reference by name; asked when it matters, once for each name (1.6).
    """

    def __init__(self, outlets: Iterable[Outlet], resolve_name: ResolveName = lambda _: None) -> None:
        declared = tuple(outlets)
        self._outlets = [outlet for outlet in declared if not isinstance(outlet, AssetAlias)]
        self._aliases = {outlet.name for outlet in declared if isinstance(outlet, AssetAlias)}
        self._resolve_name = resolve_name
        self._resolved: dict[str, str | None] = {}
        self._said: dict[Token, _Said] = {}
        self._added: dict[tuple[str, str], tuple[Asset, Mapping[str, object], set[str]]] = {}

    def say(self, target: Asset | AssetRef, extra: Mapping[str, object] | None = None) -> None:
        """Merge an extra into that of an outlet, key by key: `yield Metadata(asset, extra)`.

        Raises:
            OutletError: the asset is no outlet of the task.
            InvalidEvent: the extra is no JSON object.
        """
        said = self._of(target)
        said.extra.update(check_extra(extra, where=f"extra of {target.label}"))

    def assign(self, target: Asset | AssetRef, extra: Mapping[str, object] | None) -> None:
        """Replace the extra of an outlet: `outlet_events[asset].extra = extra`. Raises as `say`."""
        said = self._of(target)
        said.extra = check_extra(extra, where=f"extra of {target.label}")

    def extra_of(self, target: Asset | AssetRef) -> dict[str, object]:
        """The extra of an outlet as it stands; what is written into it counts. Raises OutletError as `say`."""
        return self._of(target).extra

    def add(self, alias: AssetAlias | str, asset: Asset, extra: Mapping[str, object] | None = None) -> None:
        """Update an asset through an alias: `outlet_events[alias].add(asset, extra)` (2.4).

        The same asset with the same extra through several aliases is one update that carries all of them.

        Raises:
            OutletError: the alias is no outlet of the task.
            InvalidEvent: the extra is no JSON object.
        """
        name = self.check_alias(alias)
        checked = check_extra(extra, where=f"extra of {asset.label}")
        _, _, names = self._added.setdefault((asset.uri, canonical_json(checked)), (asset, checked, set()))
        names.add(name)

    def add_partitions(self, target: Asset | AssetRef, keys: str | Iterable[str]) -> None:
        """Say which partitions of an outlet were updated, instead of the run's own (2.5).

        Raises:
            OutletError: the asset is no outlet of the task.
            InvalidPartition, InvalidEvent: a key is no text, blank, or longer than 250 characters.
        """
        said = self._of(target)
        if not isinstance(cast("object", keys), str | Iterable):
            raise InvalidEvent(
                f"partition keys of {target.label} are {keys!r}", rule="2.5", fix="Give a text or a list of texts"
            )
        checked = [check_key(key) for key in ([keys] if isinstance(keys, str) else keys)]
        said.keys = {**(said.keys or {}), **dict.fromkeys(checked)}

    def check_outlet(self, target: Asset | AssetRef) -> None:
        """Refuse an asset that is no outlet of the task (2.3): an OutletError."""
        self._of(target)

    def check_alias(self, alias: AssetAlias | str) -> str:
        """The name of an alias that is an outlet of the task; an OutletError for any other (2.3)."""
        name = alias.name if isinstance(alias, AssetAlias) else alias
        if name not in self._aliases:
            raise OutletError(
                f"the alias {name!r} is no outlet of the task",
                rule="2.4",
                fix=f"Add AssetAlias({name!r}) to the task's outlets",
            )
        return name

    def updates(self, partition_key: str | None = None) -> list[Update]:
        """The updates of a task that completed, in the order in which they are recorded.

        First the assets and references in the order of the outlets, each once and for each of its keys in order; then
        what was added to aliases, in the order in which it was first added. A reference to nothing makes none.

        Parameters:
            partition_key: the run's own key, of every update that was not given other keys.

        Raises:
            InvalidEvent: something that is not JSON was written into an extra, or the run's key is none (2.5).
        """
        run_key = None if partition_key is None else check_key(partition_key)
        found: list[Update] = []
        for uri, asset in self._declared().items():
            said = self._said.get(Token("uri", uri)) or _Said()
            extra = check_extra(said.extra, where=f"extra of {asset.label}")
            keys = [run_key] if said.keys is None else list(said.keys)
            found += [Update(asset, extra, key) for key in keys]
        for asset, extra, names in self._added.values():
            found.append(Update(asset, extra, run_key, tuple(sorted(names))))
        return found

    def _declared(self) -> dict[str, Asset]:
        """The outlets' assets by URI, in order, each once; as an asset declares it rather than a reference."""
        found: dict[str, Asset] = {}
        declared_by_asset: set[str] = set()
        for outlet in self._outlets:
            token = self._token(outlet)
            if token.kind != "uri":
                continue
            if isinstance(outlet, Asset) and token.value not in declared_by_asset:
                declared_by_asset.add(token.value)
                found[token.value] = outlet
            else:
                found.setdefault(token.value, Asset(uri=token.value))
        return found

    def _of(self, target: Asset | AssetRef) -> _Said:
        token = self._token(target)
        if token not in self._said:
            if not any(outlet.token == token or self._token(outlet) == token for outlet in self._outlets):
                raise OutletError(
                    f"{target!r} is no outlet of the task", rule="2.3", fix=f"Add {target!r} to the task's outlets"
                )
            self._said[token] = _Said()
        return self._said[token]

    def _token(self, target: Asset | AssetRef) -> Token:
        """Where what is said about a target is kept: under its URI, or under a name that belongs to none."""
        token = target.token
        if token.kind == "uri":
            return token
        if token.value not in self._resolved:
            self._resolved[token.value] = self._resolve_name(token.value)
        uri = self._resolved[token.value]
        return token if uri is None else Token("uri", uri)
