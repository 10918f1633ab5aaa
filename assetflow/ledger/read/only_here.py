"""Updates that the ledger alone has, and that another ledger may lack which takes Prefect over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assetflow.core.values.events import Recording
from assetflow.ledger.read.reader import Reader

# The cursor that holds the newest event of which it is known that this ledger decided when it was recorded.
DECIDED_UNTIL = "decided-until"
_KINDS = ("api", "cli", "watcher")


def only_here(reader: Reader) -> Sequence[Recording]:
    """Return the updates from the API, the command line and watchers after `DECIDED_UNTIL`, as Prefect takes them.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    known = reader.cursor(DECIDED_UNTIL)
    if not isinstance(known, int):
        return []
    told = [_unplaced(each) for each in reader.events.recordings(after=known)]
    return [each for each in told if each.events]


def _unplaced(recording: Recording) -> Recording:
    events = (event for event in recording.events if event.origin.kind in _KINDS)
    return replace(recording, events=tuple(replace(each, sequence=None, recorded=None) for each in events))
