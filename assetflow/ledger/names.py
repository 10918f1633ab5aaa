"""Names, aliases and assets in the ledger's book."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from assetflow.core.assets import Asset
from assetflow.core.book import all_tokens
from assetflow.core.conditions import Token
from assetflow.core.events import AssetEvent
from assetflow.ledger.among import among
from assetflow.ledger.tables import ALIAS, ALIAS_LINK, ASSET, ASSET_NAME
from assetflow.ledger.work import Work

_DESCRIBE = (
    update(ASSET).where(ASSET.c.uri == bindparam("of_uri")).values(group=bindparam("group"), extra=bindparam("extra"))
)

_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri).where(among(ASSET_NAME.c.name, "names"))
_NAMES = select(ASSET_NAME.c.uri, ASSET_NAME.c.name).where(among(ASSET_NAME.c.uri, "uris"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias).where(among(ALIAS_LINK.c.uri, "uris"))
_ASSETS = select(ASSET.c.uri, ASSET.c.group, ASSET.c.extra).where(among(ASSET.c.uri, "uris"))
_KNOWN_ALIASES = select(ALIAS.c.name).where(among(ALIAS.c.name, "aliases"))


class KnownAsset:
    """What is known of one URI: in one place, for an update asks for all of it.

    Attributes:
        names, aliases: those that it has; few.
        described: group and extra; none as long as it is no asset.
        tokens: what follows from names and aliases; none when it has to be made anew.
    """

    __slots__ = ("aliases", "described", "names", "tokens")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.aliases: tuple[str, ...] = ()
        self.described: tuple[str, Mapping[str, object]] | None = None
        self.tokens: frozenset[Token] | None = None


class Names:
    """Which names and aliases a URI has, and which assets there are: read when asked for, written by `flush`."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._owners: dict[str, str | None] = {}
        self._assets: dict[str, KnownAsset] = {}
        self._new_assets: dict[str, None] = {}
        self._new_names: dict[str, str] = {}
        self._new_links: dict[tuple[str, str], None] = {}
        self._changed_assets: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._owners) + len(self._assets)

    def load_owners(self, names: Iterable[str]) -> None:
        """Read to whom these names belong, as far as it is not known yet."""
        missing = dict.fromkeys(name for name in names if name not in self._owners)
        if missing:
            self._owners |= missing
            for name, uri in self._work.connection.execute(_OWNERS, {"names": missing}).all():
                self._owners[name] = uri

    def load_assets(self, uris: Iterable[str]) -> None:
        """Read names, aliases and description of these URIs, as far as they are not known yet."""
        missing = {uri: KnownAsset() for uri in uris if uri not in self._assets}
        if not missing:
            return
        self._assets |= missing
        wanted = {"uris": list(missing)}
        for uri, name in self._work.connection.execute(_NAMES, wanted).all():
            missing[uri].names += (name,)
        for uri, alias in self._work.connection.execute(_LINKS, wanted).all():
            missing[uri].aliases += (alias,)
        for uri, label, extra in self._work.connection.execute(_ASSETS, wanted).all():
            missing[uri].described = (label, extra)

    def known_tokens(self, event: AssetEvent) -> frozenset[Token] | None:
        """The tokens of an event's asset; none if something has to be read or worked out, or is new with this event."""
        known = self._assets.get(event.asset.uri)
        if known is None or event.asset.name not in known.names:
            return None
        return known.tokens if all(alias in known.aliases for alias in event.aliases) else None

    def owner_of(self, name: str) -> str | None:
        if name not in self._owners:
            self.load_owners([name])
        return self._owners[name]

    def names_of(self, uri: str) -> Collection[str]:
        return self._known(uri).names

    def aliases_of(self, uri: str) -> Collection[str]:
        return self._known(uri).aliases

    def tokens_of(self, uri: str) -> frozenset[Token]:
        known = self._known(uri)
        if known.tokens is None:
            known.tokens = all_tokens(uri, known.names, known.aliases)
        return known.tokens

    def declare(self, name: str, uri: str) -> None:
        known = self._asset(uri)
        known.names += (name,)
        known.tokens = None
        self._owners[name] = uri
        self._new_names[name] = uri

    def link(self, alias: str, uri: str) -> None:
        known = self._asset(uri)
        if alias not in known.aliases:
            known.aliases += (alias,)
            known.tokens = None
            self._new_links[alias, uri] = None

    def describe(self, asset: Asset) -> None:
        """Keep the group and the extra that an asset was declared with last; one without them changes nothing."""
        known = self._asset(asset.uri)
        if not (asset.group or asset.extra):
            return
        group, extra = known.described or ("", {})
        wanted = (asset.group or group, asset.extra or extra)
        if wanted != (group, extra):
            known.described = wanted
            self._changed_assets[asset.uri] = None

    def _known(self, uri: str) -> KnownAsset:
        known = self._assets.get(uri)
        if known is None:
            self.load_assets([uri])
            known = self._assets[uri]
        return known

    def _asset(self, uri: str) -> KnownAsset:
        """The URI, which is an asset from now on."""
        known = self._known(uri)
        if known.described is None:
            known.described = ("", {})
            self._new_assets[uri] = None
        return known

    def flush(self) -> None:
        """Write what is new."""
        if self._new_assets:
            self._work.connection.execute(insert(ASSET), [self._asset_row(uri) for uri in self._new_assets])
        changed = [uri for uri in self._changed_assets if uri not in self._new_assets]
        if changed:
            self._work.connection.execute(_DESCRIBE, [self._description(uri) | {"of_uri": uri} for uri in changed])
        if self._new_names:
            rows = [{"name": name, "uri": uri} for name, uri in self._new_names.items()]
            self._work.connection.execute(insert(ASSET_NAME), rows)
        if self._new_links:
            self._write_links()
        for written in (self._new_assets, self._changed_assets, self._new_names, self._new_links):
            written.clear()

    def _asset_row(self, uri: str) -> dict[str, Any]:
        return {"uri": uri, "first_seen": self._work.now} | self._description(uri)

    def _description(self, uri: str) -> dict[str, Any]:
        group, extra = self._assets[uri].described or ("", {})
        return {"group": group, "extra": extra}

    def _write_links(self) -> None:
        aliases = dict.fromkeys(alias for alias, _ in self._new_links)
        known = set(self._work.connection.scalars(_KNOWN_ALIASES, {"aliases": aliases}))
        rows = [{"name": alias, "first_seen": self._work.now} for alias in aliases if alias not in known]
        if rows:
            self._work.connection.execute(insert(ALIAS), rows)
        links = [{"alias": alias, "uri": uri, "since": self._work.now} for alias, uri in self._new_links]
        self._work.connection.execute(insert(ALIAS_LINK), links)
