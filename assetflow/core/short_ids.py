"""The short form of an id: its first characters, as lists show them and commands accept them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

SHOWN = 8
_HEX = 32
_START = re.compile(r"[0-9a-f]{8,31}")


@dataclass(frozen=True)
class IdStart:
    """The beginning of an id, of at least eight characters.

    Attributes:
        text: the beginning, without hyphens, in small letters.
    """

    text: str

    @classmethod
    def of(cls, text: str) -> IdStart | None:
        """Return the beginning that a text is, or `None` for another text."""
        plain = text.replace("-", "").lower()
        return cls(plain) if _START.fullmatch(plain) else None

    @property
    def first(self) -> UUID:
        """The smallest id that begins so."""
        return UUID(self.text.ljust(_HEX, "0"))

    @property
    def last(self) -> UUID:
        """The largest id that begins so."""
        return UUID(self.text.ljust(_HEX, "f"))

    def __str__(self) -> str:
        return self.text


def short(number: UUID) -> str:
    """Return the first characters of an id."""
    return str(number)[:SHOWN]
