"""Deployments and the automations that show their schedules, as an evaluator reads them from Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration
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

    @property
    def takes_part(self) -> bool:
        """True if it is a consumer: it has a schedule, or freshness policies, which are judged without one (8.11)."""
        return self.options.takes_part


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
