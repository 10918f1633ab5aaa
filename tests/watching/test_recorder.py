"""One value that cannot be recorded holds nothing up, and a ledger in trouble costs nothing (10.2, 2.6)."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.watchers.intake import CursorStep, Note, WatcherIntake
from assetflow.errors import LedgerLocked
from assetflow.watching.watching import Recorder


class Ledger:
    """Takes what it can, and keeps each call."""

    def __init__(self, fail: Callable[[WatcherIntake], None]) -> None:
        self.taken: list[WatcherIntake] = []
        self._fail = fail

    async def record(self, intake: WatcherIntake) -> int:
        self._fail(intake)
        self.taken.append(intake)
        return sum(len(each.events) for each in intake.recordings)

    @property
    def uris(self) -> list[str]:
        return [event.uri for intake in self.taken for each in intake.recordings for event in each.events]


def intake(*uris: str) -> WatcherIntake:
    found = WatcherIntake("queue", notes=[Note(uuid4(), "digest")], cursor=CursorStep("orders", {"item": 1}))
    for uri in uris:
        event = AssetEvent(uuid4(), Asset(uri), datetime(2026, 1, 1, tzinfo=UTC), Origin("watcher"))
        found.recordings.append(Recording(uuid4(), (event,)))
        found.makers[event.id] = ("orders",)
    return found


def refuse(error: Exception, uri: str = "bad") -> Callable[[WatcherIntake], None]:
    def fail(given: WatcherIntake) -> None:
        if any(event.uri == uri for each in given.recordings for event in each.events):
            raise error

    return fail


@pytest.mark.rule("10.2")
async def test_a_value_that_cannot_be_recorded_is_refused_alone() -> None:
    ledger = Ledger(refuse(ValueError("a surrogate")))
    given = intake("a", "bad", "b")
    assert await Recorder(ledger.record).record(given) == 2
    assert ledger.uris == ["a", "b"]
    assert ledger.taken[0].notes == given.notes
    (refused,) = ledger.taken[-2].refused
    assert (refused.id, refused.watchers) == (given.recordings[1].id, ("orders",))
    assert "a surrogate" in refused.reason
    assert [each.cursor for each in ledger.taken] == [None, None, None, None, given.cursor]


async def test_trouble_of_the_ledger_refuses_nothing() -> None:
    ledger = Ledger(refuse(LedgerLocked("held")))
    with pytest.raises(LedgerLocked):
        await Recorder(ledger.record).record(intake("a", "bad"))
    assert ledger.taken == []
