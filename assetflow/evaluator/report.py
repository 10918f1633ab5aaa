"""What the looks at the deployments led to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from assetflow.errors import AssetflowError
from assetflow.evaluator.cycles import Cycle
from assetflow.prefect_io.deployments import Deployed

LONGEST_REPORT = 50_000

What = Literal["deployed", "changed", "removed", "paused", "resumed", "held", "released", "shown", "reshown", "hidden"]


@dataclass(frozen=True)
class Done:
    """A step: with a consumer, or (shown, reshown, hidden) with the automation of a deployment."""

    what: What
    name: str


@dataclass
class Report:
    """What the looks at the deployments led to.

    Attributes:
        done: the steps that were made, the last ones if there are very many.
        scheduled: the deployments that updates of assets, or the clock, start.
        problems: those that cannot be used as they are, or not be brought in step now; consumers stay as they were.
        cycles: ways on which consumers may start each other for ever.
    """

    done: deque[Done] = field(default_factory=lambda: deque[Done](maxlen=LONGEST_REPORT))
    scheduled: dict[UUID, Deployed] = field(default_factory=dict[UUID, Deployed])
    problems: dict[UUID, AssetflowError] = field(default_factory=dict[UUID, AssetflowError])
    cycles: list[Cycle] = field(default_factory=list[Cycle])
