"""Normalise URIs, and check the names of assets and aliases (contract 1.3 to 1.5 and 1.7).

An asset is identified by its normalised URI, so every URI that a user writes, an API call has or Prefect sends passes
through `normalize`. Normalising twice changes nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from assetflow.core.json_data import is_plain_text
from assetflow.errors import AssetflowWarning, InvalidAsset

MAX_BYTES = 1500
RESERVED_NAMES = frozenset({"self", "context"})
RESERVED_SCHEME = "airflow"

SchemeRule = Callable[[SplitResult], SplitResult]

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CREDENTIALS = re.compile(r"//[^/?#]*@")
# Of an address within a path, as in jdbc:postgresql://user:password@host/shop.
_INNER_CREDENTIALS = re.compile(r"(?<=:)//[^/?#]*:[^/?#]+@")
_SECRET_KEYS = re.compile(
    r"sig|signature|token|.*[-_]token|password|passwd|pwd|secret|.*[-_]secret|api[-_]?key|access[-_]?key|x-amz-.*",
    re.ASCII | re.IGNORECASE,
)


class CredentialsCut(AssetflowWarning):
    """The warning that a URI had a password, and that user and password were cut off."""


def normalize(uri: str, *, stacklevel: int = 2) -> str:
    """Return the normalised URI, which identifies the asset. Contract 1.3.

    A text without a scheme stays as it is, and so does a URI with a scheme `x-…`.

    Parameters:
        uri: ASCII text without control characters, not blank, at most 1500 characters long (contract 1.5).
        stacklevel: the caller to which a warning points, as in `warnings.warn`.

    Raises:
        InvalidAsset: the text breaks contract 1.5, or the rule of its scheme (1.4).

    Warns:
        CredentialsCut: the URI has a password.
        AssetflowWarning: a query parameter looks like a secret; it stays, and is part of the asset's identity.
    """
    _check_text(uri, "URI", rule="1.5")
    if found := _CONTROL.search(uri):
        _refuse(
            f"The URI {_shown(uri)} holds the control character U+{ord(found[0]):04X}",
            "Leave it out, or percent-encode it: a line break is %0A.",
            "1.5",
        )
    if not uri.isascii():
        _refuse(f"The URI {_shown(uri)} is not ASCII", 'Percent-encode it: "é" is "%C3%A9".', "1.5")
    parts = _split(uri)
    if parts.scheme == RESERVED_SCHEME:
        _refuse(f"The scheme of {_shown(uri)} is reserved", "Choose another scheme than airflow://.", "1.5")
    if not parts.scheme or parts.scheme.startswith("x-"):
        return uri
    parts = _without_password(parts, uri, stacklevel + 1)
    parts = parts._replace(path=parts.path.rstrip("/") or "/", query=_query(parts, stacklevel + 1), fragment="")
    return _join(_apply_rule(parts, uri))


def check_name(name: str) -> str:
    """Return the name of an asset, unchanged. Contract 1.5.

    Raises:
        InvalidAsset: the name is not valid text, is blank or longer than 1500 bytes, or is `self` or `context`,
            which would collide with the arguments of a flow or task.
    """
    _check_text(name, "name", rule="1.5")
    if name in RESERVED_NAMES:
        _refuse(f"An asset cannot be named {name!r}", "That name is reserved; choose another one.", "1.5")
    return name


def check_alias(name: str) -> str:
    """Return the name of an alias, unchanged. Contract 1.7.

    Raises:
        InvalidAsset: the name is not valid text, is blank, or is longer than 1500 bytes.
    """
    _check_text(name, "name of an alias", rule="1.7")
    return name


def register_scheme(scheme: str, rule: SchemeRule, *, also: Sequence[str] = ()) -> None:
    """Register the rule by which URIs of a scheme are checked and normalised. It replaces the scheme's earlier rule.

    >>> from urllib.parse import SplitResult
    >>> from assetflow import Asset, register_scheme
    >>> def topic(parts: SplitResult) -> SplitResult:
    ...     if not parts.netloc:
    ...         raise ValueError("Name the broker, as in kafka://broker/topic")
    ...     return parts._replace(query="")
    >>> register_scheme("kafka", topic)
    >>> Asset("kafka://broker/orders?offset=3")
    Asset('kafka://broker/orders')

    Producers and consumers must register the same rules: the rule decides which URIs are one asset. Contract 1.4.

    Parameters:
        scheme: the scheme in lower case, without "://".
        rule: a function that gets the parts of a normalised URI and returns the parts that identify the asset. For a
            URI that it refuses, it raises `ValueError` with what to do about it.
        also: other spellings of the scheme; URIs that use them become URIs of `scheme`.

    Raises:
        InvalidAsset: the scheme is not valid, or cannot have a rule (`x-…`, `airflow`).
    """
    for spelling in (scheme, *also):
        if not _SCHEME.fullmatch(spelling) or spelling.startswith("x-") or spelling == RESERVED_SCHEME:
            _refuse(
                f"The scheme {spelling!r} cannot have a rule",
                "Use lower-case letters, digits, + - and . , and neither x-… nor airflow.",
                "1.4",
            )
    for spelling in (scheme, *also):
        _RULES[spelling] = (scheme, rule)


def _check_text(text: object, what: str, *, rule: str) -> None:
    if not isinstance(text, str):
        _refuse(f"The {what} is {text!r}, a {type(text).__name__}", "Give a text.", rule)
    if not text.strip():
        _refuse(f"The {what} is empty or blank", "Give it at least one visible character.", rule)
    # A name is part of indexes, and Postgres limits their rows by bytes.
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        message = f"The {what} has {size} bytes, the limit is {MAX_BYTES}: {_shown(text)[:40]}…"
        _refuse(message, "Shorten it.", rule)
    # `normalize` reports control characters in a URI itself.
    if what != "URI" and not is_plain_text(text):
        _refuse(f"The {what} {text[:40]!a} is not valid text", "Leave out NUL and lone surrogates.", rule)


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError as cause:
        raise InvalidAsset(
            f"The URI {_shown(uri)} cannot be taken apart: {cause}",
            fix="Percent-encode [ and ] as %5B and %5D.",
            rule="1.5",
        ) from cause


def _without_password(parts: SplitResult, given: str, stacklevel: int) -> SplitResult:
    netloc = parts.netloc.rpartition("@")[2] if parts.password else parts.netloc
    bare = parts._replace(netloc=netloc, path=_INNER_CREDENTIALS.sub("//", parts.path))
    if bare != parts:
        warnings.warn(
            f"The URI {_shown(given)} has a password; user and password were cut off. Keep credentials out of URIs, "
            "e.g. in a Prefect block.",
            CredentialsCut,
            stacklevel=stacklevel,
        )
    return bare


def _query(parts: SplitResult, stacklevel: int) -> str:
    pairs = sorted(parse_qsl(parts.query))
    secrets = sorted({key for key, _ in pairs if _SECRET_KEYS.fullmatch(key)})
    if secrets:
        bare = parts.netloc.rpartition("@")[2]
        warnings.warn(
            f"A URI {parts.scheme}://{bare}{parts.path} has the query parameter {', '.join(secrets)}, which looks like "
            "a secret. It is part of the asset's identity and will be stored and shown; leave it out.",
            AssetflowWarning,
            stacklevel=stacklevel,
        )
    return urlencode(pairs)


def _apply_rule(parts: SplitResult, given: str) -> SplitResult:
    if parts.scheme not in _RULES:
        return parts
    scheme, rule = _RULES[parts.scheme]
    try:
        return rule(parts._replace(scheme=scheme))
    except ValueError as cause:
        raise InvalidAsset(
            f"The URI {_shown(given)} breaks the rule of its scheme", fix=str(cause), rule="1.4"
        ) from cause


def _join(parts: SplitResult) -> str:
    """Return the parts as text.

    `urlunsplit` changed between Python releases. Older ones turn the path `//x` into a host, so that normalising twice
    would give another asset.
    """
    query = f"?{parts.query}" if parts.query else ""
    if parts.netloc or parts.path.startswith("//") or parts.scheme in _ALWAYS_WITH_SLASHES:
        slash = "" if parts.path.startswith("/") else "/"
        return f"{parts.scheme}://{parts.netloc}{slash}{parts.path}{query}"
    return f"{parts.scheme}:{parts.path}{query}"


def _shown(uri: str) -> str:
    """Return the URI for an error, without credentials and query, which could be secret."""
    address, mark, _ = uri.partition("?")
    return repr(_CREDENTIALS.sub("//…@", address) + ("?…" if mark else ""))


def _refuse(message: str, fix: str, rule: str) -> NoReturn:
    raise InvalidAsset(message, fix=fix, rule=rule)


# The rules of 1.4


def _plain(parts: SplitResult) -> SplitResult:
    return parts


def _bucket(parts: SplitResult) -> SplitResult:
    if not parts.hostname:
        raise ValueError(f"Name the bucket, as in {parts.scheme}://bucket/key")
    return parts


def _database(port: int, *levels: str) -> SchemeRule:
    def rule(parts: SplitResult) -> SplitResult:
        if not parts.hostname:
            raise ValueError(f"Name the host, as in {parts.scheme}://host/{'/'.join(levels)}")
        names = parts.path.split("/")[1:]
        if len(names) > len(levels) or not all(names):
            raise ValueError(f"Write the path as {'/'.join(levels)}, or the first names of it")
        try:
            given = parts.port
        except ValueError as cause:
            raise ValueError("Give a port from 0 to 65535") from cause
        if given is None:
            parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{port}")
        return parts

    return rule


_RULES: dict[str, tuple[str, SchemeRule]] = {}
register_scheme("file", _plain)
register_scheme("s3", _bucket)
register_scheme("gs", _bucket)
register_scheme("postgres", _database(5432, "database", "schema", "table"), also=("postgresql",))
register_scheme("mysql", _database(3306, "database", "table"), also=("mariadb",))

# Schemes whose URIs are written with // even without a host, as Python 3.11 knows them.
_ALWAYS_WITH_SLASHES = frozenset(
    (
        *("file", "ftp", "git", "git+ssh", "gopher", "http", "https", "imap", "mms", "nfs", "nntp", "prospero"),
        *("rsync", "rtsp", "rtsps", "rtspu", "sftp", "shttp", "snews", "svn", "svn+ssh", "telnet", "wais", "ws", "wss"),
    )
)
