"""The book of chapter 8: the data graph, updates, readings, runs, targets, policies and backfills.

It is the part of a state that versions and freshness need. Like the rest of the state it reads from its source what it
does not remember, and notes its changes. Without a source it holds everything itself, as in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import FlowRecord, Moment
from assetflow.core.freshness.state.agenda import Agenda
from assetflow.core.freshness.state.backfills import Backfills
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.policies import Policies
from assetflow.core.freshness.state.readings import Readings
from assetflow.core.freshness.state.runs import Runs
from assetflow.core.freshness.state.source import FreshnessSource
from assetflow.core.freshness.state.targets import Targets
from assetflow.core.freshness.state.updates import Updates


class Book:
    """What chapter 8 knows.

    Parameters:
        resolve: returns the URI of a token; None for a name that nobody has.
        tokens_of: returns the tokens of a URI, by which mappers are found.
        place: returns the sequence of the newest update in the ledger.
        in_memory: whether the book itself has to remember every update, because nobody else does.

    Attributes:
        agenda: what the next pass has to look at.
    """

    def __init__(
        self,
        source: FreshnessSource | None,
        resolve: Resolve,
        tokens_of: TokensOf,
        place: Callable[[], int],
        *,
        in_memory: bool = True,
    ) -> None:
        self._is_all = in_memory
        source = source or FreshnessSource()
        self._source = source
        self.place = place
        self.resolve = resolve
        self.changes = changes = FreshnessChanges()
        self.graph = DataGraph(source.flows(), resolve, tokens_of)
        self.updates = Updates(source, changes)
        self.readings = Readings(source, changes)
        self.runs = Runs(source, changes)
        self.targets = Targets(source, changes)
        self.policies = Policies(source, changes)
        self.backfills = Backfills(source, changes)
        self.agenda = Agenda()
        self._flows: dict[int, FlowRecord | None] = {}

    def moment(self, now: datetime) -> Moment:
        """Return a moment: now, after the newest update in the ledger."""
        return Moment(now, self.place())

    def concerns(self, uri: str) -> bool:
        """Return True if versions of an asset have to be remembered: in memory all, in a ledger those of the graph."""
        return self._is_all or bool(self.graph.makers(uri) or self.graph.readers(uri))

    def flow_record(self, number: int) -> FlowRecord | None:
        """Return since when a flow is as it is; None for one that is not known."""
        if number not in self._flows:
            self._flows[number] = self._source.flow_record(number)
        return self._flows[number]

    def save_flow(self, number: int, record: FlowRecord | None) -> None:
        """Write since when a flow is as it is; None for one that is gone."""
        self._flows[number] = self.changes.flows[number] = record
