"""Kinds of queues that other packages bring, by the entry point group `assetflow.watchers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from assetflow.core.watchers.brokers import BROKERS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "assetflow.watchers"


@cache
def other_kinds() -> Mapping[str, EntryPoint]:
    """Return what opens each kind of queue that an installed package brings, by the scheme of its addresses."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=GROUP) if each.name not in BROKERS}


class Schemes(tuple[str, ...]):
    """The schemes of our own brokers and of other kinds. Packages are looked through only for a scheme of theirs."""

    def __contains__(self, scheme: object) -> bool:
        return scheme in BROKERS or (bool(scheme) and scheme in other_kinds())
