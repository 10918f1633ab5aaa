"""Wait policies: how many of the awaited keys a roll-up needs before it runs (contract 5.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

from assetflow.errors import InvalidPartition, not_a


class WaitPolicy(ABC):
    """The base class of wait policies: how many of the awaited keys a roll-up needs before it runs. Contract 5.2."""

    @abstractmethod
    def needed(self, awaited: int) -> int:
        """Return how many different keys must be there, of `awaited` ones."""

    @abstractmethod
    def describe(self) -> str:
        """Return the policy in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Return plain JSON values, which `policy_from_json` reads back."""

    def is_met(self, received: int, awaited: int) -> bool:
        """Return True if `received` different awaited keys are enough."""
        return received >= self.needed(awaited)


@dataclass(frozen=True)
class WaitForAll(WaitPolicy):
    """A wait policy that needs every awaited key.

    >>> from assetflow.partitions import WaitForAll
    >>> WaitForAll().needed(24)
    24

    Contract 5.2.
    """

    def needed(self, awaited: int) -> int:
        return awaited

    def describe(self) -> str:
        return "all"

    def as_json(self) -> object:
        return "all"


@dataclass(frozen=True)
class MinimumCount(WaitPolicy):
    """A wait policy that needs some of the awaited keys.

    >>> from assetflow.partitions import MinimumCount
    >>> MinimumCount(20).needed(24), MinimumCount(-2).needed(24)
    (20, 22)

    Contract 5.2.

    Parameters:
        n: at least `n` keys; if it is negative, all but `-n`.

    Raises:
        InvalidPartition: `n` is 0, or not a whole number.
    """

    n: int

    def __post_init__(self) -> None:
        n = cast(object, self.n)
        if not isinstance(n, int) or isinstance(n, bool) or n == 0:
            raise InvalidPartition(
                f"MinimumCount({n!r}) is not a number of keys",
                fix="Give a number above 0 (at least so many keys) or below 0 (all but so many), or use WaitForAll().",
                rule="5.2",
            )

    def needed(self, awaited: int) -> int:
        return self.n if self.n > 0 else max(0, awaited + self.n)

    def describe(self) -> str:
        return f"at least {self.n}" if self.n > 0 else f"all but {-self.n}"

    def as_json(self) -> object:
        return {"min": self.n}


def check_policy(value: object) -> None:
    """Refuse a value that is not a wait policy.

    Raises:
        InvalidPartition: the value is not a wait policy, or is a class of them without parentheses.
    """
    if not isinstance(value, WaitPolicy):
        message, fix = not_a(value, "a wait policy", "Give WaitForAll() or MinimumCount(20)")
        raise InvalidPartition(message, fix=fix, rule="5.2")


def policy_from_json(value: object) -> WaitPolicy:
    """Return the wait policy that `as_json` wrote as `"all"` or `{"min": n}`.

    Raises:
        InvalidPartition: the value is neither.
    """
    if value == "all":
        return WaitForAll()
    if isinstance(value, dict) and list(cast("dict[object, object]", value)) == ["min"]:
        return MinimumCount(cast("dict[str, int]", value)["min"])
    raise InvalidPartition(f"{value!r} is not a wait policy", fix='Write "all" or {"min": 20}.', rule="5.1")
