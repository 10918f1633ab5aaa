"""What a run of an Eager or Lazy flow read: each input with its version, beside what the run before it had read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from uuid import UUID

from assetflow.core.explain.status import short
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import items_then
from assetflow.core.freshness.records import Run
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.shapes import called, shape

MOST_READS = 100


@shape
class RunRead:
    """An input that a run read, in the version that was there when it began."""

    uri: str
    name: str
    key: str | None = field(metadata=called("partition_key"))
    before: str | None
    """The version that the run before it read; null if there was none."""
    version: str | None
    """The version that it read; null if the input was missing."""
    event_id: UUID | None
    """The update that brought this version; null if the input was missing, or only confirmed."""

    @property
    def words(self) -> str:
        """The change of the version: `a1b2 → c3d4`, `a1b2, as before`, or `missing`."""
        if self.version is None:
            return "missing"
        if self.before == self.version:
            return f"{short(self.version)}, as before"
        return f"{short(self.before) if self.before else 'not read before'} → {short(self.version)}"


def run_reads(
    book: FreshnessState, name_of: Callable[[str], str], node: FlowNode, run: Run, before: Run | None
) -> list[RunRead]:
    """Return what a run read, at most 100 items, those first that had changed since the run before it.

    Parameters:
        name_of: returns the readable name of a URI.
        before: the run of the same target before it; `None` for the first one.
    """
    found = list(islice(_reads(book, name_of, node, run, before), MOST_READS))
    return sorted(found, key=lambda each: each.before == each.version)


def _reads(
    book: FreshnessState, name_of: Callable[[str], str], node: FlowNode, run: Run, before: Run | None
) -> Iterator[RunRead]:
    for uri, mapper in sorted(run.tried.reads.items(), key=lambda each: each[0]):
        for item in items_then(book, node, mapper, run.target.key, uri, run.tried.sequence):
            read = book.updates.as_of(item, run.tried.sequence)
            old = None if before is None else book.updates.as_of(item, before.tried.sequence)
            yield RunRead(
                *(uri, name_of(uri), item.key),
                None if old is None else old.data_version,
                None if read is None else read.data_version,
                None if read is None or read.confirms else read.event,
            )
