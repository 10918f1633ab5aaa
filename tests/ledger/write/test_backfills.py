"""Backfills of assets on a ledger: what runs in which order, whatever happens in between. Contract 8.18."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from assetflow.core.freshness import backfilling
from assetflow.core.freshness.records import Backfill
from assetflow.core.partitions import IdentityMapper, StartOfDayMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.errors import Conflict, InvalidCall, UnknownBackfill
from assetflow.ledger import Ledger
from assetflow.ledger.write import backfills as writing
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only

DAY = Asset("s3://lake/day")


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


def fresh_chain(place: Place) -> None:
    """Deploy raw → core → board, and let both be up to date."""
    place.deploy("core", kept([RAW], [CORE]))
    place.deploy("board", kept([CORE], [BOARD]))
    (core,) = place.update(RAW)
    (board,) = place.run("core", core, CORE)
    assert not place.run("board", board, BOARD)


def opened_again(place: Place) -> Ledger:
    """The same ledger in another process, which remembers nothing."""
    return Ledger.open(place.ledger._engine.url.render_as_string(hide_password=False))


def begin(
    place: Place, uri: str, keys: Sequence[str] | None = None, *, down: bool = True, most: int | None = None
) -> list[Decision]:
    planned = place.ledger.reader.backfills.plan(uri, keys, down=down)
    wanted = Backfill(0, place.later(), uri, down, most, by="ann", why="bugfix")
    return place.ledger.writer.backfills.begin(wanted, planned, place.now)[1]


def state(place: Place, number: int = 1) -> tuple[str, dict[str, int]]:
    record = place.ledger.reader.backfills.get(number)
    assert record is not None
    counts = record.shown().counts
    assert isinstance(counts, dict)
    return record.state, {name: each for name, each in counts.items() if each}


def hourly(place: Place, hours: int = 4) -> None:
    """Deploy an Eager flow by hour and one by day below it, with some hours made."""
    place.deploy("hours", kept([RAW], [CORE], mapper=IdentityMapper(), catchup="none"))
    place.deploy("days", kept([CORE], [DAY], mapper=StartOfDayMapper(), catchup="none"))
    waiting = [each for hour in range(hours) for each in place.update(RAW, f"2026-01-0{1 + hour // 2}T{hour:02}:00:00")]
    while waiting:
        decision = waiting.pop(0)
        name = place.names([decision])[0].split()[0]
        waiting += place.run(name, decision, CORE if name == "hours" else DAY)


def test_8_18_a_stopped_backfill_asks_for_nothing_and_holds_nothing(place: Place) -> None:
    fresh_chain(place)
    (core,) = begin(place, CORE.uri)
    assert not place.make("core", core, CORE)
    assert not place.ledger.writer.backfills.stop(1, place.later())
    (board,) = place.end(core)
    assert board.kind == "eager", "nobody else would build it now"
    assert state(place) == ("stopped", {"todo": 1, "done": 1})
    assert not place.ledger.writer.backfills.resume(1, place.later()), "its target runs already"
    (after,) = place.run("board", board, BOARD)
    assert after.kind == "backfill"
    place.run("board", after, BOARD)
    assert state(place) == ("completed", {"done": 2})


def test_8_18_a_resumed_backfill_takes_off_what_no_flow_makes_any_more(place: Place) -> None:
    fresh_chain(place)
    place.end(only(begin(place, CORE.uri)), "failed")
    place.ledger.writer.consumers.remove(place.consumers["core"].id, place.later())
    assert not place.ledger.writer.backfills.resume(1, place.later())
    assert state(place) == ("failed", {"removed": 2})


@pytest.mark.rule("8.18")
def test_restarted_at_any_line_nothing_runs_twice(place: Place) -> None:
    hourly(place)
    made = begin(place, CORE.uri, most=3)
    seen = [each.id for each in made]
    while made:
        assert len(made) <= 3
        decision = made.pop(0)
        name = place.names([decision])[0].split()[0]
        with opened_again(place) as restarted:
            after = Place(restarted, place.now, place.consumers)
            after.make(name, decision, CORE if name == "hours" else DAY)
        with opened_again(place) as restarted:
            after = Place(restarted, after.now, place.consumers)
            following = after.end(decision)
            assert not after.end(decision), "an end that is heard twice"
        place.now = after.now
        seen += [each.id for each in following]
        made += following
    assert len(seen) == len({*seen}) == 6
    assert state(place) == ("completed", {"done": 6})


def test_a_backfill_whose_command_dies_while_it_writes_never_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_chain(place)

    def die(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(writing, "reach", die)
        with pytest.raises(KeyboardInterrupt):
            begin(place, CORE.uri)
    assert state(place) == ("preparing", {"todo": 2})
    assert place.names(place.update(RAW)) == ["core"], "it holds nothing back"
    for refused in (place.ledger.writer.backfills.resume, place.ledger.writer.backfills.stop):
        with pytest.raises(Conflict):
            refused(1, place.later())
    with pytest.raises(UnknownBackfill):
        place.ledger.writer.backfills.stop(9, place.later())


def test_too_many_dependencies_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    hourly(place)
    monkeypatch.setattr(backfilling, "MOST_EDGES", 3)
    with pytest.raises(InvalidCall, match="Give fewer keys"):
        place.ledger.reader.backfills.plan(CORE.uri, None, down=True)


def test_pruning_removes_old_backfills_that_ended(place: Place) -> None:
    fresh_chain(place)
    (core,) = begin(place, CORE.uri, down=False)
    place.ledger.writer.prune(place.now + timedelta(days=1), 10_000)
    assert state(place)[0] == "running"
    place.run("core", core, CORE)
    place.ledger.writer.prune(place.now + timedelta(days=1), 10_000)
    assert place.ledger.reader.backfills.all() == []
