"""The names, aliases and descriptions of assets in the state."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from assetflow.core.condition_tree import Token
from assetflow.core.rules.state.changes import Changes, Description
from assetflow.core.rules.state.kept import Kept, weight_of_json
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent


class KnownAsset:
    """The names, aliases and description of one URI, in one object because each update needs all of it.

    Attributes:
        names: the names that belong to the URI.
        aliases: the aliases that it is linked to.
        described: its group and extra; `None` if it is not an asset yet.
        tokens: its tokens; `None` after a new name or alias, until they are needed.
    """

    __slots__ = ("aliases", "described", "names", "tokens")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.aliases: tuple[str, ...] = ()
        self.described: Description | None = None
        self.tokens: frozenset[Token] | None = None


def _weight(known: KnownAsset) -> int:
    return 1000 + 200 * (len(known.names) + len(known.aliases)) + _weight_of_description(known.described)


def _weight_of_description(described: Description | None) -> int:
    if described is None:
        return 0
    group, extra = described
    return len(group) + weight_of_json(extra)


def _weight_of_owner(_: str) -> int:
    return 250


def _described(known: KnownAsset, asset: Asset) -> Description:
    """Return the new description of an asset: a group or extra that the declaration leaves empty stays."""
    group, extra = known.described or ("", {})
    return asset.group or group, asset.extra or extra


class Names:
    """Which URI a name belongs to, and which names, aliases and description a URI has."""

    def __init__(self, source: StateSource, changes: Changes, limit: int) -> None:
        self._source = source
        self._changes = changes
        # "" for a name that belongs to no URI.
        self._owners = Kept[str, str](limit // 4, _weight_of_owner)
        self._assets = Kept[str, KnownAsset](limit, _weight)

    def load_owners(self, names: Iterable[str]) -> None:
        """Read to which URI each of these names belongs, unless it is remembered."""
        missing = self._owners.unknown(names)
        if missing:
            found = dict(self._source.owners(missing))
            for name in missing:
                self._owners.keep(name, found.get(name, ""))

    def load(self, uris: Iterable[str]) -> None:
        """Read the names, aliases and descriptions of these URIs, unless they are remembered."""
        missing = {uri: KnownAsset() for uri in self._assets.unknown(uris)}
        if not missing:
            return
        for uri, name in self._source.names(missing):
            missing[uri].names += (name,)
        for uri, alias in self._source.aliases(missing):
            missing[uri].aliases += (alias,)
        for uri, group, extra in self._source.descriptions(missing):
            missing[uri].described = (group, extra)
        for uri, known in missing.items():
            self._assets.keep(uri, known)

    def known_tokens(self, event: AssetEvent) -> frozenset[Token] | None:
        """Return the tokens of an event's asset, or `None` if they are not remembered or change with this event."""
        known = self._assets.find(event.asset.uri)
        if known is None or any(name not in known.names for name in event.asset.names):
            return None
        return known.tokens if all(alias in known.aliases for alias in event.aliases) else None

    def owner_of(self, name: str) -> str | None:
        """Return the URI that a name belongs to, or `None`."""
        try:
            owner = self._owners[name]
        except KeyError:
            self.load_owners([name])
            owner = self._owners[name]
        return owner or None

    def names_of(self, uri: str) -> Collection[str]:
        """Return the names of a URI."""
        return self._known(uri).names

    def aliases_of(self, uri: str) -> Collection[str]:
        """Return the aliases that a URI is linked to."""
        return self._known(uri).aliases

    def tokens_of(self, uri: str) -> frozenset[Token]:
        """Return the tokens of a URI: the URI itself, its names and its aliases."""
        known = self._known(uri)
        if known.tokens is None:
            known.tokens = all_tokens(uri, known.names, known.aliases)
        return known.tokens

    def description_of(self, uri: str) -> Description:
        """Return the group and the extra that an asset was last declared with."""
        return self._known(uri).described or ("", {})

    def declare(self, name: str, uri: str) -> None:
        """Give a URI a name, which the URI that had it loses."""
        owner = self.owner_of(name)
        if owner is not None:
            former = self._known(owner)
            former.names = tuple(each for each in former.names if each != name)
            former.tokens = None
        known = self._asset(uri)
        known.names += (name,)
        known.tokens = None
        self._assets.grew(200)
        self._owners.keep(name, uri)
        self._changes.names[name] = uri

    def link(self, alias: str, uri: str) -> None:
        """Link a URI to an alias, for good."""
        known = self._asset(uri)
        if alias not in known.aliases:
            known.aliases += (alias,)
            known.tokens = None
            self._assets.grew(200)
            self._changes.links[alias, uri] = None

    def describe(self, asset: Asset) -> None:
        """Save the group and the extra of an asset, unless it is declared without them."""
        known = self._asset(asset.uri)
        if not (asset.group or asset.extra):
            return
        described = _described(known, asset)
        if described != known.described:
            known.described = described
            self._assets.grew(_weight_of_description(described))
            self._changes.descriptions[asset.uri] = None

    def learn(self, events: Iterable[AssetEvent]) -> None:
        """Forget what events that another process recorded have changed: names, links and descriptions."""
        for event in events:
            asset = event.asset
            known = self._assets.find(asset.uri)
            if known is not None and (self.known_tokens(event) is None or _described(known, asset) != known.described):
                self._assets.forget([asset.uri])
            if self._owners.find(asset.name) == "":
                self._owners.forget([asset.name])

    def renew(self) -> None:
        """Forget the least recently used entries if there are too many."""
        self._owners.renew()
        self._assets.renew()

    def _known(self, uri: str) -> KnownAsset:
        try:
            return self._assets[uri]
        except KeyError:
            self.load([uri])
            return self._assets[uri]

    def _asset(self, uri: str) -> KnownAsset:
        """Return what is remembered of a URI; make the URI an asset if it is not one."""
        known = self._known(uri)
        if known.described is None:
            known.described = ("", {})
            self._changes.assets[uri] = None
        return known


def all_tokens(uri: str, names: Iterable[str], aliases: Iterable[str]) -> frozenset[Token]:
    """Return the tokens of a URI that has these names and aliases."""
    return frozenset(
        (Token("uri", uri), *(Token("name", name) for name in names), *(Token("alias", alias) for alias in aliases))
    )
