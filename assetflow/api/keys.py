"""The API keys of a server and their rights: read, send updates, or everything."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum

from assetflow.errors import InvalidSettings

SHORTEST = 16


class Right(StrEnum):
    """The right that a request needs; each route needs exactly one."""

    READ = "read"
    EMIT = "emit"
    OPERATE = "operate"


ALL = frozenset(Right)
NONE = frozenset[Right]()
SETTINGS = {
    Right.READ: "ASSETFLOW_API_KEY_READ",
    Right.EMIT: "ASSETFLOW_API_KEY_EMIT",
    Right.OPERATE: "ASSETFLOW_API_KEY",
}
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
# POST requests that only read, because their question does not fit in a URL, and those that every session may send.
_POSTS_TO_READ = frozenset({"/api/v1/events/known", "/api/v1/simulate", "/logout"})
_POSTS_TO_EMIT = frozenset({"/api/v1/events", "/api/v2/assets/events", "/asset/events"})


def right_for(method: str, path: str) -> Right:
    """Return the right that a request needs. A request that changes something and is not listed needs `operate`."""
    if method in _READING or (method == "POST" and path in _POSTS_TO_READ):
        return Right.READ
    emits = path in _POSTS_TO_EMIT or (path.startswith("/api/v1/assets/") and path.endswith("/observations"))
    return Right.EMIT if method == "POST" and emits else Right.OPERATE


@dataclass(frozen=True)
class Keys:
    """The keys of a server. An empty text means that the key is not set.

    Attributes:
        everything: the key that may do everything. If it is not set, the server does not ask for a key.
        read: the key that may only read.
        emit: the key that may only send updates.
    """

    everything: str = ""
    read: str = ""
    emit: str = ""

    def rights(self, shown: str) -> frozenset[Right]:
        """Return the rights of a key, or an empty set for a wrong one."""
        allowed = ((self.everything, ALL), (self.read, frozenset({Right.READ})), (self.emit, frozenset({Right.EMIT})))
        # Compare all keys, each in constant time, so that the time tells nothing about them.
        found = [rights for key, rights in allowed if _same(key, shown) and key]
        return found[0] if found else NONE

    def check(self, *, others_can_reach: bool) -> None:
        """Check that the keys fit in a header, are hard to guess, and differ from each other.

        Raises:
            InvalidSettings: they do not; the error says what to change.
        """
        given = {SETTINGS[Right.OPERATE]: self.everything, SETTINGS[Right.READ]: self.read}
        given = {name: key for name, key in (given | {SETTINGS[Right.EMIT]: self.emit}).items() if key}
        for name, key in given.items():
            _check_key(name, key, SHORTEST if others_can_reach else 1)
        if given and not self.everything:
            raise _invalid(
                f"{', '.join(given)} is set without ASSETFLOW_API_KEY, so that the server asks nobody for an API key",
                "Set ASSETFLOW_API_KEY too, to another API key; `openssl rand -hex 32` makes a good one",
            )
        if len(set(given.values())) < len(given):
            raise _invalid(f"{' and '.join(given)} are the same API key", "Set each to an API key of its own")


def _check_key(name: str, key: str, shortest: int) -> None:
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise _invalid(
            f"{name} (its value is not shown) cannot be sent in a header",
            "Use printable ASCII characters without blanks around them; `openssl rand -hex 32` makes a good one",
        )
    if len(key) < shortest:
        raise _invalid(
            f"{name} has fewer than {shortest} characters, and others who can reach the server could guess it",
            "Set it to a long random text; `openssl rand -hex 32` makes one",
        )


def _invalid(message: str, fix: str) -> InvalidSettings:
    return InvalidSettings(message, where="environment", fix=fix)


def _same(key: str, shown: str) -> bool:
    return hmac.compare_digest(key.encode(), shown.encode("utf-8", "replace"))
