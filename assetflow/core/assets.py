"""Assets, references to them, and aliases (contract chapter 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, overload

from assetflow.core.conditions import Leaf, Token
from assetflow.core.uri import RESERVED_NAMES, check_alias, check_name, normalize
from assetflow.errors import InvalidAsset


class Asset(Leaf):
    """A piece of data that tasks update and flows are scheduled on: its normalised URI.

    `Asset("s3://bucket/orders")`, `Asset("s3://bucket/orders", name="orders")`, `Asset("orders", "s3://bucket/orders")`
    and `Asset(name="orders", uri="s3://bucket/orders")` mean the same asset: two assets are equal when their URIs are
    (1.1). A URI is never connected to or expanded (1.8).

    Parameters:
        name_or_uri: the URI, or the name if a URI is given beside it (Airflow's order).
        uri: the URI, normalised on the way in (1.3).
        name: a readable name; the normalised URI if none is given (1.2).
        group: a label that pages and lists sort by.
        extra: static facts about the asset, a JSON object.

    Raises:
        InvalidAsset: the URI or the name breaks 1.4 or 1.5.
    """

    uri: str
    name: str
    group: str
    extra: Mapping[str, object]

    def __init__(
        self,
        name_or_uri: str | None = None,
        uri: str | None = None,
        *,
        name: str | None = None,
        group: str = "",
        extra: Mapping[str, object] | None = None,
    ) -> None:
        given_name, given_uri = _name_and_uri(name_or_uri, uri, name)
        self.uri = normalize(given_uri)
        self.name = self.uri if given_name is None or given_name == given_uri else check_name(given_name)
        if self.name in RESERVED_NAMES:
            check_name(self.name)
        self.group = group
        self.extra = _checked_extra(extra, self.uri)

    @overload
    @staticmethod
    def ref(*, name: str) -> AssetRef: ...
    @overload
    @staticmethod
    def ref(*, uri: str) -> AssetRef: ...
    @staticmethod
    def ref(*, name: str | None = None, uri: str | None = None) -> AssetRef:
        """A reference to an asset by name or by URI, resolved when it is evaluated (1.6)."""
        return AssetRef(name=name, uri=uri)

    @property
    def token(self) -> Token:
        return Token("uri", self.uri)

    @property
    def label(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self.uri == other.uri if isinstance(other, Asset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.uri)

    def __repr__(self) -> str:
        return f"Asset({self.uri!r})" if self.name == self.uri else f"Asset({self.uri!r}, name={self.name!r})"

    def __str__(self) -> str:
        return self.uri


class AssetRef(Leaf):
    """A reference to an asset by name or by URI; a name that belongs to no asset is never satisfied (1.6).

    Raises:
        InvalidAsset: not exactly one of name and URI is given, or it breaks chapter 1.
    """

    name: str | None
    uri: str | None

    def __init__(self, *, name: str | None = None, uri: str | None = None) -> None:
        if (name is None) == (uri is None):
            raise InvalidAsset(
                "a reference needs exactly one of name and uri", rule="1.6", fix='Write Asset.ref(name="orders")'
            )
        self.name = None if name is None else check_name(name)
        self.uri = None if uri is None else normalize(uri)

    @property
    def token(self) -> Token:
        return Token("name", self.name) if self.name is not None else Token("uri", self.uri or "")

    @property
    def label(self) -> str:
        return self.name or self.uri or ""

    def __eq__(self, other: object) -> bool:
        return self.token == other.token if isinstance(other, AssetRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(("ref", self.token))

    def __repr__(self) -> str:
        return f"Asset.ref({self.token.kind}={self.label!r})"


class AssetAlias(Leaf):
    """A name for assets that become known only when a task runs (1.7, 2.4).

    Parameters:
        name: the alias, case-sensitive, in a namespace of its own.
        group: a label that pages and lists sort by.
    """

    name: str
    group: str

    def __init__(self, name: str, *, group: str = "") -> None:
        self.name = check_alias(name)
        self.group = group

    @property
    def token(self) -> Token:
        return Token("alias", self.name)

    @property
    def label(self) -> str:
        return f"alias {self.name}"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, AssetAlias) else NotImplemented

    def __hash__(self) -> int:
        return hash(("alias", self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"


Outlet = Asset | AssetRef | AssetAlias


def _checked_extra(extra: object, uri: str) -> Mapping[str, object]:
    if extra is not None and not isinstance(extra, Mapping):
        raise InvalidAsset(
            f"the extra of {uri} is a {type(extra).__name__}, not a JSON object", rule="1.1", fix='Write {"team": "x"}'
        )
    return dict(cast("Mapping[str, object]", extra or {}))


def _name_and_uri(first: str | None, uri: str | None, name: str | None) -> tuple[str | None, str]:
    """Name (or none) and URI from the ways to write them."""
    if first is not None and uri is not None and name is not None:
        raise InvalidAsset(
            f"an asset has one name and one URI; {first!r}, {uri!r} and {name!r} were given",
            rule="1.2",
            fix='Write Asset("s3://bucket/key", name="orders")',
        )
    if uri is not None:
        return (first if first is not None else name), uri
    if first is not None:
        return name, first
    if name is not None:
        return None, name
    raise InvalidAsset("an asset needs a URI", rule="1.2", fix='Write Asset("s3://bucket/key")')
