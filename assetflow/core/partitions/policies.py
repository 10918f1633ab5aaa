"""Wait policies: how many of the awaited keys a roll-up needs before it runs (contract 5.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

from assetflow.errors import InvalidPartition


class WaitPolicy(ABC):
    """Decides from two numbers whether a roll-up has what it needs."""

    @abstractmethod
    def needed(self, awaited: int) -> int:
        """How many different keys must be there, of so many awaited ones."""

    @abstractmethod
    def describe(self) -> str:
        """The policy in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Plain JSON values; `policy_from_json` reads them back."""

    def is_met(self, received: int, awaited: int) -> bool:
        """Whether so many different awaited keys are enough."""
        return received >= self.needed(awaited)


@dataclass(frozen=True)
class WaitForAll(WaitPolicy):
    """Every awaited key must be there."""

    def needed(self, awaited: int) -> int:
        return awaited

    def describe(self) -> str:
        return "all"

    def as_json(self) -> object:
        return "all"


@dataclass(frozen=True)
class MinimumCount(WaitPolicy):
    """Some of the awaited keys are enough.

    Parameters:
        n: at least so many keys; a negative number: all but so many.

    Raises:
        InvalidPartition: n is 0, which would wait for nothing, or no whole number.
    """

    n: int

    def __post_init__(self) -> None:
        n = cast(object, self.n)
        if not isinstance(n, int) or isinstance(n, bool) or n == 0:
            raise InvalidPartition(
                f"MinimumCount({n!r}) says nothing",
                fix="Give a number above 0 (at least so many keys) or below 0 (all but so many), or use WaitForAll().",
                rule="5.2",
            )

    def needed(self, awaited: int) -> int:
        return self.n if self.n > 0 else max(0, awaited + self.n)

    def describe(self) -> str:
        return f"at least {self.n}" if self.n > 0 else f"all but {-self.n}"

    def as_json(self) -> object:
        return {"min": self.n}


def policy_from_json(value: object) -> WaitPolicy:
    """The policy of `"all"` or `{"min": n}`.

    Raises:
        InvalidPartition: it is neither.
    """
    if value == "all":
        return WaitForAll()
    if isinstance(value, dict) and list(cast("dict[object, object]", value)) == ["min"]:
        return MinimumCount(cast("dict[str, int]", value)["min"])
    raise InvalidPartition(f"{value!r} is no wait policy", fix='Write "all" or {"min": 20}.', rule="5.1")
