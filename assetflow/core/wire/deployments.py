"""Deployments and the automations that show their schedules, as an evaluator reads them from Prefect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from assetflow.core.shapes import HIDDEN, TextOrNull, from_json, shape
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import AssetflowError


@dataclass(frozen=True)
class Deployed:
    """One deployment.

    Attributes:
        name: `flow/deployment`.
        text: the stored text of the declaration, without the schedule if a tag has dropped it; empty if the flow
            declares nothing.
        problem: the error if the schedule cannot be used.
        entrypoint: the file and the function of the flow, as in `flows/tables.py:core`; empty if Prefect has none.
        created: when it was made; `None` if Prefect does not say.
        held: True if the deployment itself is paused. Contract 3.4.
        bare: True if Prefect has no parameter schema of the flow.
        inherited: a fingerprint of the values that runs copy from the deployment when they are created.
        parameters: the parameters that it gives its runs, as JSON text.
    """

    id: UUID
    name: str
    flow_id: UUID
    updated: datetime
    entrypoint: str = ""
    created: datetime | None = None
    held: bool = False
    text: str = ""
    declaration: FlowDeclaration | None = None
    problem: AssetflowError | None = None
    bare: bool = False
    inherited: str = ""
    parameters: str = ""

    @classmethod
    def of(cls, name: str, declaration: FlowDeclaration, moment: datetime) -> Deployed:
        """Return a deployment that nobody has made, as it would be made at a moment."""
        made = cls(uuid4(), name, uuid4(), moment, created=moment, declaration=declaration)
        try:
            return replace(made, text=declaration_to_text(declaration))
        except AssetflowError as error:
            return replace(made, problem=error)

    @property
    def where(self) -> str:
        """The place of an error in its schedule, for messages."""
        place = f" ({self.entrypoint})" if self.entrypoint else ""
        return f"deployment {self.name!r}{place}"

    @property
    def options(self) -> ConsumerOptions:
        """The options of its flow; those of a flow without a schedule if it declares nothing."""
        return self.declaration.options if self.declaration is not None else ConsumerOptions()

    @property
    def schedule(self) -> Schedule:
        return self.options.schedule

    @property
    def is_scheduled(self) -> bool:
        """True if updates of assets, or a timetable, start it."""
        return self.schedule.starts_runs


@dataclass(frozen=True)
class ShownAutomation:
    """One of assetflow's automations, as Prefect has it.

    Attributes:
        deployment_id: the deployment that it runs; `None` if a user has removed the action.
        enabled: the state of its switch.
        content: the automation as Prefect's client writes it.
    """

    id: UUID
    name: str
    updated: datetime | None
    deployment_id: UUID | None
    enabled: bool
    content: Any


T = TypeVar("T")


@dataclass(frozen=True)
class DeployedChanges(Generic[T]):
    """The changes that one call found: new and changed objects, oldest change first, and the ids of deleted ones."""

    changed: Sequence[T] = ()
    gone: Sequence[UUID] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)


# The cursor of the ledger that holds them.
CURSOR = "refused deployments"
# The cursor that holds the notes on others, by their names.
NOTES = "notes on deployments"


@shape
class RefusedDeployment:
    """A deployment whose declaration cannot be used. The consumer that it had before stays as it was (4.4)."""

    deployment_id: UUID
    name: str
    """`flow/deployment`."""
    error: str
    where: str
    """The deployment with its entrypoint, and what in it."""
    fix: TextOrNull
    rule: str | None
    """The rule of the contract that it breaks."""
    declared: str = field(metadata=HIDDEN)
    """A fingerprint of the declaration that is refused; see `fingerprint`."""

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

    def to_row(self) -> dict[str, object]:
        """Return the refusal as the ledger keeps it."""
        return {**vars(self), "deployment_id": str(self.deployment_id)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> RefusedDeployment:
        """Return the refusal that `to_row` wrote."""
        return from_json(cls, row)


def fingerprint(text: str) -> str:
    """Return a short text that is another one for another declaration."""
    return sha256(text.encode()).hexdigest()[:16]
