"""What a flow reads and makes, as its deployment declares it (contract chapter 8, Words)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from assetflow.core.conditions import Token
from assetflow.core.freshness.policy import FreshnessPolicy
from assetflow.core.json_data import is_plain_text
from assetflow.errors import InvalidSchedule

LONGEST_VERSION = 250

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True)
class Output:
    """An asset that a flow makes.

    Attributes:
        inlets: what the task that makes it reads; empty if the asset depends on all inputs of the flow.
        code_version: that of the outlet, of its task, or of the flow: the first that is given (8.2).
    """

    asset: Token
    inlets: tuple[Token, ...] = ()
    code_version: str | None = None

    def __post_init__(self) -> None:
        if self.code_version is not None:
            check_version("code version", self.code_version)


@dataclass(frozen=True)
class DataFlow:
    """What a flow reads and makes. Tokens are URIs, or names that are resolved when they are used.

    Attributes:
        inlets: the inlets of its tasks.
        policies: the freshness policies of its outputs and inlets (8.11).
    """

    outputs: tuple[Output, ...] = ()
    inlets: tuple[Token, ...] = ()
    policies: Mapping[Token, FreshnessPolicy] = field(default_factory=dict[Token, FreshnessPolicy])

    @property
    def tokens(self) -> frozenset[Token]:
        """The tokens of everything that it reads or makes."""
        made = {token for output in self.outputs for token in (output.asset, *output.inlets)}
        return frozenset(made | set(self.inlets) | set(self.policies))


NOTHING = DataFlow()


def check_version(what: str, version: object) -> str:
    """Return a code version or a data version, unchanged. Contract 8.2.

    Parameters:
        what: what the error calls it.

    Raises:
        InvalidSchedule: it is not a text of 1 to 250 characters, or it is blank.
    """
    if isinstance(version, str) and version.strip() and len(version) <= LONGEST_VERSION and is_plain_text(version):
        return version
    shown = repr(version)
    raise InvalidSchedule(
        f"the {what} is {shown if len(shown) <= 60 else shown[:57] + '…'}",
        rule="8.2",
        fix=f"Give a text of 1 to {LONGEST_VERSION} characters that is not blank",
    )
