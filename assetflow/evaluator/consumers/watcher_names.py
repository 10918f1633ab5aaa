"""Check that a name of a watcher stands for one trigger among all deployments (contract 10.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import NameTaken


class WatcherNames:
    """The names of watchers of all deployments.

    Parameters:
        deployed: the deployments, by id, as they are now.

    Attributes:
        conflicts: the deployments that give a name to another trigger than others do.
    """

    def __init__(self, deployed: Mapping[UUID, Deployed]) -> None:
        self._deployed = deployed
        self.conflicts: set[UUID] = set()

    def check(self, deployed: Deployed) -> NameTaken | None:
        """Return the error if another deployment gives the name of a watcher to another trigger."""
        mine = {each.name: each for each in _watchers_of(deployed)}
        self.conflicts.discard(deployed.id)
        if not mine:
            return None
        for other in self._deployed.values():
            if other.id == deployed.id or other.id in self.conflicts:
                continue
            for theirs in _watchers_of(other):
                if theirs.name in mine and mine[theirs.name].trigger != theirs.trigger:
                    self.conflicts.add(deployed.id)
                    return _name_taken(deployed, mine[theirs.name], other, theirs)
        return None


def _name_taken(deployed: Deployed, mine: AssetWatcher, other: Deployed, theirs: AssetWatcher) -> NameTaken:
    return NameTaken(
        f"the watcher {mine.name!r} is {theirs.trigger.describe()} in {other.where}, and "
        f"{mine.trigger.describe()} here",
        where=deployed.where,
        fix="Give one of them another name, or deploy both with the same trigger",
        rule="10.1",
    )


def _watchers_of(deployed: Deployed) -> Iterable[AssetWatcher]:
    assets = () if deployed.declaration is None else deployed.declaration.assets
    return (watcher for asset in assets for watcher in asset.watchers)
