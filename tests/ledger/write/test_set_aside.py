"""Of very many targets, a deploy or a resume judges the greatest keys and the clock the others (contract 8.18)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from assetflow.core.freshness.state import state as freshness_state
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.ledger import Ledger
from assetflow.ledger.sql.freshness_tables import TARGET
from tests.environment.postgres import new_database
from tests.ledger.write.test_kept import BOARD, CORE, LEFT, RAW, Place, kept, only
from tests.ledger.write.test_owed import FLOW, KEYS, counts, keys

BY_KEY = IdentityMapper()


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness_state, "MOST_JUDGED", 5)


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return with_keys(ledger)


def with_keys(ledger: Ledger) -> Place:
    place = Place(ledger)
    for key in KEYS:
        place.update(RAW, key)
    return place


def look(place: Place) -> list[Decision]:
    """Let the clock go on once."""
    now = place.later()
    return place.ledger.writer.clock.run(now, now).decisions


def look_at_all(place: Place) -> tuple[list[Decision], int]:
    """Let the clock go on until nothing is due; return its decisions, and how often it went on."""
    made, times, now = list[Decision](), 0, place.later()
    while True:
        passed = place.ledger.writer.clock.run(now, now)
        made += passed.decisions
        if passed.next is None or passed.next > now:
            return made, times + bool(passed.decisions)
        times += 1


def test_8_18_a_deploy_judges_the_greatest_keys_and_the_clock_the_others(place: Place) -> None:
    assert keys(place.deploy("core", FLOW)) == KEYS[:14:-1]
    assert counts(place) == {"in_progress": 5, "owed": 15}
    assert keys(look(place)) == KEYS[14:9:-1]
    found, times = look_at_all(place)
    assert keys(found) == KEYS[9:3:-1]
    assert times == 2
    assert counts(place) == {"in_progress": 16, "owed": 4}


def test_8_18_another_process_goes_on_where_one_ended(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        place = with_keys(ledger)
        place.deploy("core", FLOW)
        look(place)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        place.ledger = ledger
        assert keys(look_at_all(place)[0]) == KEYS[9:3:-1]
        assert counts(place) == {"in_progress": 16, "owed": 4}


def test_8_8_the_clock_finds_what_a_pause_left_out_of_date(place: Place) -> None:
    for key in KEYS:
        place.update(CORE, key)
    place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all"))
    look_at_all(place)
    number = place.consumers["core"].id
    place.ledger.writer.consumers.switch(number, paused=True, now=place.later())
    place.update(RAW, "k00")
    assert not place.ledger.writer.consumers.switch(number, paused=False, now=place.later())[1]
    assert keys(look_at_all(place)[0]) == ["k00"]
    assert counts(place) == {"in_progress": 1}


def test_8_8_a_key_that_was_set_aside_and_changes_runs_at_once_and_once(place: Place) -> None:
    place.deploy("core", FLOW)
    assert "k00" in keys(place.update(RAW, "k00"))
    others, _ = look_at_all(place)
    assert "k00" not in keys(others)
    assert counts(place) == {"in_progress": 16, "owed": 4}


def test_8_6_what_is_below_waits_for_a_key_that_was_set_aside(place: Place) -> None:
    with_board(place)
    place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code="1"))
    assert not place.update(LEFT, "k00")
    assert counts(place, "board") == {"waits": 1}


def test_8_6_what_is_below_waits_in_the_pass_of_the_deploy(place: Place) -> None:
    with_board(place)
    place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code="1"))
    assert not place.update(LEFT, "k01")
    place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code="2"))
    assert counts(place, "board") == {"waits": 1}


def test_8_6_what_is_below_does_not_wait_for_a_key_that_an_update_from_outside_has_made(place: Place) -> None:
    with_board(place)
    place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code="1"))
    assert keys(place.update(CORE, "k00")) == ["k00"]
    assert "k00" not in keys(look_at_all(place)[0])


def with_board(place: Place) -> None:
    """Deploy a flow that is up to date for all keys, below the one that is deployed next."""
    for key in KEYS:
        for asset in (CORE, LEFT, BOARD):
            place.update(asset, key)
    place.deploy("board", kept([CORE, LEFT], [BOARD], mapper=BY_KEY, catchup="all"))
    look_at_all(place)


def test_8_7_a_failed_run_is_repeated_at_its_time_although_its_flow_was_deployed_again(place: Place) -> None:
    flow = {"mapper": BY_KEY, "catchup": "all", "retries": 1, "retry_delay": timedelta(minutes=5)}
    place.deploy("core", kept([RAW], [CORE], **flow))
    look_at_all(place)
    first = only(place.update(RAW, "k00"))
    place.end(first, "failed")
    number = place.consumers["core"].id
    place.ledger.writer.consumers.switch(number, paused=True, now=place.later())
    place.ledger.writer.consumers.switch(number, paused=False, now=place.later())
    assert "k00" not in keys(look_at_all(place)[0])
    place.later(300)
    assert "k00" in keys(look_at_all(place)[0])


@pytest.mark.postgres
def test_8_8_the_greatest_key_is_the_same_whatever_the_locale_of_postgres(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness_state, "MOST_JUDGED", 2)
    with new_database("en-US") as url, Ledger.open(url) as other:
        for ledger in (sqlite_ledger, other):
            place = Place(ledger)
            for key in ("B", "a", "A", "b"):
                place.update(RAW, key)
            place.deploy("board", kept([RAW], [BOARD], mapper=BY_KEY, catchup="all", lookback=1))
            look_at_all(place)
            assert counts(place, "board") == {"in_progress": 1, "history": 3}
            assert not place.update(RAW, "B")


def test_8_18_a_batch_of_updates_judges_no_more_than_one_pass(place: Place) -> None:
    place.deploy("core", FLOW)
    number, now = place.consumers["core"].id, place.later()
    other = [Recording(uuid4(), (AssetEvent(uuid4(), BOARD, now, Origin("api")),)) for _ in range(10)]
    place.ledger.writer.events.record(other, now)
    left = select(func.count()).where(TARGET.c.consumer == number, TARGET.c.look.is_not(None))
    with place.ledger.transaction(now) as unit:
        assert unit.connection.scalar(left) == 10


@pytest.mark.parametrize("seed", range(4))
def test_8_18_the_runs_do_not_depend_on_how_many_are_judged_at_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    for most in (Random(seed).randint(1, 7), 1_000):
        monkeypatch.setattr(freshness_state, "MOST_JUDGED", most)
        with Ledger.open(tmp_path / f"{most}.db") as ledger:
            ran.append(story(with_keys(ledger), Random(seed)))
    assert ran[0] == ran[1]


def story(place: Place, random: Random) -> list[str]:
    """Deploy, update, pause, end and fail at random, and return which keys ran, in order."""
    made: list[Decision] = []
    for key in random.sample(KEYS, 10):
        place.update(CORE, key)
    made += place.deploy("core", FLOW) + look_at_all(place)[0]
    waiting, ran = sorted(made, key=lambda each: each.target_key or ""), list[str]()
    for step in range(30):
        what = random.choice(["update", "end", "end", "fail", "deploy", "pause"])
        if what == "update":
            found = place.update(RAW, random.choice(KEYS))
        elif what == "deploy":
            found = place.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code=str(step)))
        elif what == "pause":
            number = place.consumers["core"].id
            place.ledger.writer.consumers.switch(number, paused=True, now=place.later())
            _, found = place.ledger.writer.consumers.switch(number, paused=False, now=place.later())
        elif waiting:
            decision = waiting.pop(random.randrange(len(waiting)))
            ran.append(f"{decision.target_key} {what}")
            found = place.run("core", decision, CORE) if what == "end" else place.end(decision, "failed")
        else:
            continue
        waiting = sorted([*waiting, *found, *look_at_all(place)[0]], key=lambda each: each.target_key or "")
    return [*ran, *(f"{each.target_key} goes on" for each in waiting)]
