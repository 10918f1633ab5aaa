"""What a flow reads and makes, as its deployment declares it (contract chapter 8, Words)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assetflow.core.values.conditions import Token
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.versions import check_code_version


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
            check_code_version(self.code_version)


@dataclass(frozen=True)
class DataFlow:
    """The inputs and outputs of a flow. Tokens are URIs, or names that are resolved when they are used.

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
