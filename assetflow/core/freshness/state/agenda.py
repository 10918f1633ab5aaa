"""The agenda: what the next pass has to look at, because something happened to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from assetflow.core.freshness.records import Target


@dataclass
class Agenda:
    """The targets, flows and assets to judge in the next pass.

    Attributes:
        targets: the targets to judge.
        flows: the flows whose runs, updates or declarations changed: what is below them may not have to wait any more.
        assets: the assets that were updated or observed.
        instants: the instants of the updates.
        owing: the targets that are on the agenda because their flow was deployed or resumed: what it owes
            runs in parts.
    """

    targets: dict[Target, None] = field(default_factory=dict[Target, None])
    flows: dict[int, None] = field(default_factory=dict[int, None])
    assets: dict[str, None] = field(default_factory=dict[str, None])
    instants: dict[datetime, None] = field(default_factory=dict[datetime, None])
    owing: dict[Target, None] = field(default_factory=dict[Target, None])

    def add(self, target: Target) -> None:
        """Add a target."""
        self.targets[target] = None
        self.flows[target.consumer] = None

    def add_owing(self, target: Target) -> None:
        """Add a target whose flow was deployed, or paused until now."""
        self.add(target)
        self.owing[target] = None

    def take(self) -> Agenda:
        """Return what is on the agenda, and clear it."""
        taken = Agenda(self.targets, self.flows, self.assets, self.instants, self.owing)
        self.targets, self.flows, self.assets, self.instants, self.owing = {}, {}, {}, {}, {}
        return taken
