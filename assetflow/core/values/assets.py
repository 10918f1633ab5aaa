"""Assets, references to them, and aliases (contract chapter 1); code and data versions (8.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard, cast, overload

from assetflow.core.json_data import NOTHING, check_json, freeze, is_plain_text
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.uri import RESERVED_NAMES, check_alias, check_name, normalize
from assetflow.core.values.watchers import AssetWatcher, check_watchers
from assetflow.errors import InvalidAsset, InvalidEvent, InvalidSchedule, not_a

LONGEST_VERSION = 250
RULE = "8.2"
FIX = f"Give a text of 1 to {LONGEST_VERSION} characters that is not blank"

_SHOWN = 60


def check_code_version(version: object) -> str:
    """Return a code version, unchanged.

    Raises:
        InvalidSchedule: it is not a text of 1 to 250 characters, or it is blank.
    """
    if _is_version(version):
        return version
    raise InvalidSchedule(
        f"the code version must be a text of 1 to 250 characters, not {_shown(version)}", rule=RULE, fix=FIX
    )


def check_data_version(version: object, path: str = "data_version", *, where: str = "") -> str:
    """Return a data version, unchanged.

    Parameters:
        path: what the error calls it, such as "data_version".
        where: the place that the error names: an asset, an option.

    Raises:
        InvalidEvent: it is not a text of 1 to 250 characters, or it is blank.
    """
    if _is_version(version):
        return version
    raise InvalidEvent(f"{path} is {_shown(version)}", where=where, rule=RULE, fix=FIX)


def _is_version(version: object) -> TypeGuard[str]:
    return (
        isinstance(version, str)
        and bool(version.strip())
        and len(version) <= LONGEST_VERSION
        and is_plain_text(version)
    )


def _shown(version: object) -> str:
    shown = repr(version)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "…"


class Asset(Leaf):
    """A piece of data that tasks update and flows are scheduled on.

    >>> from assetflow import Asset
    >>> Asset("s3://shop/orders", name="orders")
    Asset('s3://shop/orders', name='orders')
    >>> Asset("orders", "s3://shop/orders") == Asset(name="orders", uri="s3://shop/orders/")
    True

    Two assets are equal if their normalised URIs are equal; name, group and extra do not count. A URI is a label:
    assetflow never opens or expands it. An asset is immutable.

    Contract 1.1, 1.2, 1.8, 8.11.

    Parameters:
        name_or_uri: the URI; or the name, if `uri` is given too (Airflow's order).
        uri: the URI, at most 1500 ASCII characters. It is normalised (contract 1.3).
        name: a readable name; by default the normalised URI.
        group: a label by which pages and lists group assets.
        extra: static facts about the asset, a JSON object.
        watchers: what updates the asset from outside, such as the messages of a queue (contract 10.1).
        freshness: how old the asset's data may be; events tell when it is older (contract 8.11, 8.13).
        code_version: the version of the code of each task that has the asset as an outlet; it counts before
            those of the task and the flow (contract 8.2).
        description, url, owners: what Prefect's assets have as properties; they are in `extra` under these names.

    Raises:
        InvalidAsset: the URI or the name breaks contract 1.4 or 1.5, `extra` is not a JSON object (contract 2.7), or a
            description, a URL or an owner is not a text.
        InvalidSchedule: `freshness` is not a `FreshnessPolicy`, or `code_version` is not a text of 1 to 250 characters
            that is not blank.
        InvalidWatcher: a value of `watchers` is not a watcher, or two triggers have one name.
    """

    uri: str
    name: str
    group: str
    extra: Mapping[str, object]
    watchers: tuple[AssetWatcher, ...]
    freshness: FreshnessPolicy | None
    code_version: str | None
    # More names of the URI, from other declarations beside this one.
    other_names: tuple[str, ...]

    def __init__(
        self,
        name_or_uri: str | None = None,
        uri: str | None = None,
        *,
        name: str | None = None,
        group: str = "",
        extra: Mapping[str, object] | None = None,
        watchers: Sequence[AssetWatcher] = (),
        freshness: FreshnessPolicy | None = None,
        code_version: str | None = None,
        description: str | None = None,
        url: str | None = None,
        owners: Sequence[str] | None = None,
    ) -> None:
        given_name, given_uri = _name_and_uri(name_or_uri, uri, name)
        normalized = normalize(given_uri)
        called = normalized if given_name is None or given_name == given_uri else check_name(given_name)
        if called in RESERVED_NAMES:
            check_name(called)
        checked_group, checked_extra = _checked_group(group, normalized), _checked_extra(extra, normalized)
        if properties := _checked_properties(normalized, description, url, owners):
            checked_extra = freeze({**checked_extra, **properties})
        checked_watchers = check_watchers(watchers, normalized) if watchers != () else ()
        self.__dict__.update(
            uri=normalized,
            name=called,
            group=checked_group,
            extra=checked_extra,
            watchers=checked_watchers,
            freshness=_checked_policy(freshness, normalized),
            code_version=None if code_version is None else check_code_version(code_version),
            other_names=(),
        )

    @classmethod
    def known(
        cls,
        uri: str,
        name: str,
        group: str = "",
        extra: Mapping[str, object] | None = None,
        watchers: tuple[AssetWatcher, ...] = (),
        freshness: FreshnessPolicy | None = None,
        code_version: str | None = None,
        other_names: tuple[str, ...] = (),
    ) -> Asset:
        """Return an asset that was recorded or declared before, without checking or normalising its parts.

        This process may have registered other scheme rules (contract 1.4) than the one that made the asset.
        """
        asset = cls.__new__(cls)
        asset.__dict__.update(
            uri=uri,
            name=name,
            group=group,
            extra=freeze(extra) if extra else NOTHING,
            watchers=watchers,
            freshness=freshness,
            code_version=code_version,
            other_names=other_names,
        )
        return asset

    @overload
    @staticmethod
    def ref(*, name: str) -> AssetRef: ...
    @overload
    @staticmethod
    def ref(*, uri: str) -> AssetRef: ...
    @staticmethod
    def ref(*, name: str | None = None, uri: str | None = None) -> AssetRef:
        """Return a reference to an asset by its name or its URI: `Asset.ref(name="orders")`. See `AssetRef`."""
        return AssetRef(name=name, uri=uri)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that its declarations give to the URI."""
        return (self.name, *self.other_names)

    @property
    def token(self) -> Token:
        """The token by which the asset's events are found: its URI."""
        return Token("uri", self.uri)

    @property
    def label(self) -> str:
        """The readable name of the asset."""
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
    """A reference to an asset that is declared elsewhere, by its name or its URI.

    >>> from assetflow import Asset
    >>> Asset.ref(name="orders") | Asset.ref(uri="s3://shop/customers")
    AssetAny(Asset.ref(name='orders'), Asset.ref(uri='s3://shop/customers'))

    assetflow looks the name up each time it evaluates the schedule. While no asset has the name, no update satisfies
    the reference.

    Contract 1.6.

    Parameters:
        name: the asset's name.
        uri: the asset's URI, which is normalised (contract 1.3).

    Raises:
        InvalidAsset: neither or both are given, or the given one breaks contract 1.4 or 1.5.
    """

    name: str | None
    uri: str | None

    def __init__(self, *, name: str | None = None, uri: str | None = None) -> None:
        if (name is None) == (uri is None):
            raise InvalidAsset(
                "a reference needs exactly one of name and uri", rule="1.6", fix='Write Asset.ref(name="orders")'
            )
        self.__dict__.update(
            name=None if name is None else check_name(name), uri=None if uri is None else normalize(uri)
        )

    @property
    def token(self) -> Token:
        """The token by which the asset's events are found: the name or the URI."""
        return Token("name", self.name) if self.name is not None else Token("uri", self.uri or "")

    @property
    def label(self) -> str:
        """The readable name of the reference: the name or the URI."""
        return self.name or self.uri or ""

    def __eq__(self, other: object) -> bool:
        return self.token == other.token if isinstance(other, AssetRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(("ref", self.token))

    def __repr__(self) -> str:
        return f"Asset.ref({self.token.kind}={self.label!r})"


class AssetAlias(Leaf):
    """A name for assets that become known only when a task runs.

    >>> from assetflow import Asset, AssetAlias, outlet_events, task
    >>> latest = AssetAlias("latest-orders")
    >>> @task(outlets=[latest])
    ... def load(day: str):
    ...     outlet_events[latest].add(Asset(f"s3://shop/orders/{day}"))

    A flow that is scheduled on the alias runs on the assets that tasks add to it.

    Contract 1.7, 2.4, 3.2.

    Parameters:
        name: the alias, at most 1500 bytes, case-sensitive. An alias and an asset can have the same name.
        group: a label by which pages and lists group aliases.

    Raises:
        InvalidAsset: the name is blank, too long or not valid text.
    """

    name: str
    group: str

    def __init__(self, name: str, *, group: str = "") -> None:
        self.__dict__.update(name=check_alias(name), group=group)

    @property
    def token(self) -> Token:
        """The token by which the alias's events are found: the alias."""
        return Token("alias", self.name)

    @property
    def label(self) -> str:
        """The readable name of the alias."""
        return f"alias {self.name}"

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, AssetAlias) else NotImplemented

    def __hash__(self) -> int:
        return hash(("alias", self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"


Outlet = Asset | AssetRef | AssetAlias


def distinct(outlets: Iterable[Outlet]) -> tuple[Outlet, ...]:
    """Return outlets once each, in order.

    Of declarations of one asset, the first counts, with the names and the watchers of all, the first freshness policy
    and the first code version.
    """
    found: dict[Outlet, Outlet] = {}
    for each in outlets:
        first = found.setdefault(each, each)
        if isinstance(first, Asset) and isinstance(each, Asset) and first is not each:
            found[each] = merged(first, each)
    return tuple(found.values())


def merged(first: Asset, other: Asset) -> Asset:
    """Return the first of two declarations of one asset, with what only the other one says."""
    watchers = tuple(dict.fromkeys((*first.watchers, *other.watchers)))
    _, *names = dict.fromkeys((*first.names, *other.names))
    more = (watchers, first.freshness or other.freshness, first.code_version or other.code_version, tuple(names))
    if more == (first.watchers, first.freshness, first.code_version, first.other_names):
        return first
    return Asset.known(first.uri, first.name, first.group, first.extra, *more)


def _checked_group(group: object, uri: str) -> str:
    if not isinstance(group, str) or not is_plain_text(group):
        raise InvalidAsset(
            f"the group {ascii(group)[:60]} of {uri} is not valid text",
            rule="1.5",
            fix="Give a text without NUL and lone surrogates",
        )
    return group


def _checked_extra(extra: object, uri: str) -> Mapping[str, object]:
    if extra is None:
        return NOTHING
    if not isinstance(extra, Mapping):
        raise InvalidAsset(
            f"the extra of {uri} is a {type(extra).__name__}, not a JSON object", rule="1.1", fix='Write {"team": "x"}'
        )
    try:
        return freeze(check_json(cast(object, extra), "extra"))
    except InvalidEvent as error:
        raise InvalidAsset(error.message, where=uri, fix=error.fix, rule=error.rule) from error


def _checked_properties(uri: str, description: object, url: object, owners: object) -> Mapping[str, object]:
    """Return those of Prefect's properties that are given, after checking that they are texts, the owners a list."""
    found = {name: value for name, value in (("description", description), ("url", url)) if value is not None}
    for name, value in found.items():
        _check_text(value, name, uri)
    if owners is None:
        return found
    if isinstance(owners, str) or not isinstance(owners, Sequence):
        raise InvalidAsset(f"owners of {uri} is not a list of texts", rule="1.2", fix='Write owners=["data team"]')
    listed = list(cast("Sequence[object]", owners))
    for owner in listed:
        _check_text(owner, "an owner", uri)
    return {**found, "owners": listed}


def _check_text(value: object, name: str, uri: str) -> None:
    if not isinstance(value, str) or not is_plain_text(value):
        raise InvalidAsset(f"{name} of {uri} is {ascii(value)[:60]}, not a text", rule="1.2", fix="Give a text")


def _checked_policy(policy: object, uri: str) -> FreshnessPolicy | None:
    if policy is None or isinstance(policy, FreshnessPolicy):
        return policy
    raise not_a(
        InvalidSchedule,
        policy,
        "a FreshnessPolicy",
        "Write freshness=FreshnessPolicy(timedelta(hours=1))",
        where=uri,
        rule="8.11",
    )


def _name_and_uri(first: str | None, uri: str | None, name: str | None) -> tuple[str | None, str]:
    """Return the name, or `None`, and the URI from the three ways to write them."""
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
