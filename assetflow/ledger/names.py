"""Names, aliases and assets in the ledger's book."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from assetflow.core.assets import Asset
from assetflow.core.book import all_tokens
from assetflow.core.conditions import Token
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


class Names:
    """Which names and aliases a URI has, and which assets there are: read when asked for, written by `flush`."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._owners: dict[str, str | None] = {}
        self._names: dict[str, dict[str, None]] = {}
        self._aliases: dict[str, dict[str, None]] = {}
        self._tokens: dict[str, frozenset[Token]] = {}
        self._described: dict[str, tuple[str, Mapping[str, object]] | None] = {}
        self._new_assets: dict[str, None] = {}
        self._new_names: dict[str, str] = {}
        self._new_links: dict[tuple[str, str], None] = {}
        self._changed_assets: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._owners) + len(self._names)

    def load_owners(self, names: Iterable[str]) -> None:
        """Read to whom these names belong, as far as it is not known yet."""
        missing = dict.fromkeys(name for name in names if name not in self._owners)
        if missing:
            self._owners |= missing
            for name, uri in self._work.connection.execute(_OWNERS, {"names": missing}).all():
                self._owners[name] = uri

    def load_assets(self, uris: Iterable[str]) -> None:
        """Read names, aliases and description of these URIs, as far as they are not known yet."""
        missing = dict.fromkeys(uri for uri in uris if uri not in self._names)
        if not missing:
            return
        for uri in missing:
            self._names[uri], self._aliases[uri], self._described[uri] = {}, {}, None
        wanted = {"uris": missing}
        for uri, name in self._work.connection.execute(_NAMES, wanted).all():
            self._names[uri][name] = None
        for uri, alias in self._work.connection.execute(_LINKS, wanted).all():
            self._aliases[uri][alias] = None
        for uri, label, extra in self._work.connection.execute(_ASSETS, wanted).all():
            self._described[uri] = (label, extra)

    def owner_of(self, name: str) -> str | None:
        if name not in self._owners:
            self.load_owners([name])
        return self._owners[name]

    def names_of(self, uri: str) -> Collection[str]:
        if uri not in self._names:
            self.load_assets([uri])
        return self._names[uri].keys()

    def aliases_of(self, uri: str) -> Collection[str]:
        if uri not in self._aliases:
            self.load_assets([uri])
        return self._aliases[uri].keys()

    def tokens_of(self, uri: str) -> frozenset[Token]:
        found = self._tokens.get(uri)
        if found is None:
            found = self._tokens[uri] = all_tokens(uri, self.names_of(uri), self.aliases_of(uri))
        return found

    def declare(self, name: str, uri: str) -> None:
        self._add_asset(uri)
        self._tokens.pop(uri, None)
        self._owners[name] = uri
        self._names[uri][name] = None
        self._new_names[name] = uri

    def link(self, alias: str, uri: str) -> None:
        if alias in self.aliases_of(uri):
            return
        self._add_asset(uri)
        self._tokens.pop(uri, None)
        self._aliases[uri][alias] = None
        self._new_links[alias, uri] = None

    def describe(self, asset: Asset) -> None:
        """Keep the group and the extra that an asset was declared with last; one without them changes nothing."""
        self._add_asset(asset.uri)
        if not (asset.group or asset.extra):
            return
        group, extra = self._described[asset.uri] or ("", {})
        wanted = (asset.group or group, asset.extra or extra)
        if wanted != (group, extra):
            self._described[asset.uri] = wanted
            self._changed_assets[asset.uri] = None

    def _add_asset(self, uri: str) -> None:
        if uri not in self._names:
            self.load_assets([uri])
        if self._described[uri] is None:
            self._described[uri] = ("", {})
            self._new_assets[uri] = None

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
        group, extra = self._described[uri] or ("", {})
        return {"group": group, "extra": extra}

    def _write_links(self) -> None:
        aliases = dict.fromkeys(alias for alias, _ in self._new_links)
        known = set(self._work.connection.scalars(_KNOWN_ALIASES, {"aliases": aliases}))
        rows = [{"name": alias, "first_seen": self._work.now} for alias in aliases if alias not in known]
        if rows:
            self._work.connection.execute(insert(ALIAS), rows)
        links = [{"alias": alias, "uri": uri, "since": self._work.now} for alias, uri in self._new_links]
        self._work.connection.execute(insert(ALIAS_LINK), links)
