"""Deployments whose declarations the evaluator refuses, as the ledger keeps and processes show them (contract 8.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from assetflow.errors import AssetflowError

# The cursor of the ledger that holds them.
CURSOR = "refused deployments"
# The cursor that holds the notes on others, by their names.
NOTES = "notes on deployments"


@dataclass(frozen=True)
class RefusedDeployment:
    """A deployment whose declaration cannot be used. The consumer that it had before stays as it was (contract 4.4).

    Attributes:
        deployment_id: its id in Prefect.
        name: `flow/deployment`.
        error: why it is refused.
        where: the deployment with its entrypoint, and what in it.
        fix: what to do about it; may be empty.
        rule: the rule of the contract that it breaks; `None` if it is another problem.
        declared: a fingerprint of the declaration that is refused; see `fingerprint`.
    """

    deployment_id: UUID
    name: str
    error: str
    where: str
    fix: str
    rule: str | None
    declared: str

    @classmethod
    def of(cls, deployment_id: UUID, name: str, error: AssetflowError, text: str) -> RefusedDeployment:
        """Return what is kept of an error of a deployment.

        Parameters:
            text: the stored text of its declaration.
        """
        return cls(deployment_id, name, error.message, error.where, error.fix, error.rule, fingerprint(text))

    @property
    def words(self) -> str:
        """The refusal in words: the place, the problem, what to do, and the rule."""
        parts = [f"{self.where or self.name}: {self.error}".rstrip("."), self.fix.rstrip(".")]
        seen = [] if self.rule is None else [f"Contract {self.rule}"]
        return ". ".join([*filter(None, parts), *seen])

    def as_json(self) -> dict[str, object]:
        """Return the refusal as the API and `--json` show it."""
        return {
            "deployment_id": str(self.deployment_id),
            "name": self.name,
            "error": self.error,
            "where": self.where,
            "fix": self.fix or None,
            "rule": self.rule,
        }

    def to_row(self) -> dict[str, object]:
        """Return the refusal as the ledger keeps it."""
        return self.as_json() | {"fix": self.fix, "declared": self.declared}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> RefusedDeployment:
        """Return the refusal that `to_row` wrote."""
        number = UUID(row["deployment_id"])
        return cls(number, row["name"], row["error"], row["where"], row["fix"], row["rule"], row["declared"])


def fingerprint(text: str) -> str:
    """Return a short text that is another one for another declaration."""
    return sha256(text.encode()).hexdigest()[:16]
