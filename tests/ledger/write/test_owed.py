"""What a flow with keys owes after a deploy or a pause is asked for in parts. Contract 8.18."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import select

from assetflow.core.freshness.state import state as freshness_state
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.keeping import Catchup
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from assetflow.ledger.sql.freshness_tables import TARGET
from tests.environment.postgres import new_database
from tests.ledger.sql.test_plans import statements
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only

KEYS = [f"k{number:02}" for number in range(20)]
FLOW = kept([RAW], [CORE], mapper=IdentityMapper(), catchup="all", code="1")


def with_keys(ledger: Ledger) -> Place:
    place = Place(ledger)
    for key in KEYS:
        place.update(RAW, key)
    return place


@pytest.fixture
def place(sqlite_ledger: Ledger) -> Place:
    return with_keys(sqlite_ledger)


def keys(decisions: Sequence[Decision]) -> list[str]:
    return sorted((each.target_key or "" for each in decisions), reverse=True)


def counts(place: Place, name: str = "core") -> dict[str, int]:
    (found,) = place.ledger.reader.freshness.plan(place.now, place.consumers[name].id)
    return dict(found.counts)


def test_8_18_sixteen_at_a_time_the_greatest_keys_first(place: Place) -> None:
    made = place.deploy("core", FLOW)
    assert keys(made) == KEYS[:3:-1]
    assert counts(place) == {"in_progress": 16, "owed": 4}
    first = next(each for each in made if each.target_key == "k10")
    assert keys(place.run("core", first, CORE, code="1")) == ["k03"]
    assert keys(place.end(made[0], "failed")) == ["k02"]
    assert counts(place) == {"in_progress": 16, "owed": 2, "tried": 1}


BY_KEY = IdentityMapper()


@pytest.fixture
def few(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A ledger with keys, of which a pass judges five at once."""
    monkeypatch.setattr(freshness_state, "MOST_JUDGED", 5)
    return with_keys(ledger)


def look(place: Place) -> list[Decision]:
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


def flow(code: str) -> FlowDeclaration:
    return kept([RAW], [CORE], mapper=BY_KEY, catchup="all", code=code)


def pause_and_resume(place: Place, *updates: str) -> list[Decision]:
    """Pause the flow core, update keys, and return what its resume asks for."""
    number, consumers = place.consumers["core"].id, place.ledger.writer.consumers
    consumers.switch(number, paused=True, now=place.later())
    for key in updates:
        assert not place.update(RAW, key)
    return consumers.switch(number, paused=False, now=place.later())[1]


@pytest.mark.parametrize("catchup", ["all", "latest", "none"])
def test_8_16_a_deploy_judges_any_number_of_keys_with_the_same_statements(place: Place, catchup: Catchup) -> None:
    place.deploy("first", kept([RAW], [CORE]))
    sent: dict[int, list[int]] = {20: [], 200: []}
    for number in sent:
        raw, core = Asset(f"s3://raw/{number}"), Asset(f"s3://core/{number}")
        for key in range(number):
            place.update(raw, str(key))
            place.update(core, str(key))
        for code in ("1", "2"):
            with statements(place.ledger) as found:
                place.deploy(f"{number}", kept([raw], [core], mapper=BY_KEY, catchup=catchup, code=code))
            sent[number].append(len(found))
    assert sent[20] == sent[200]


def test_8_18_a_deploy_judges_the_greatest_keys_and_the_clock_the_others(few: Place) -> None:
    assert keys(few.deploy("core", FLOW)) == KEYS[:14:-1]
    assert counts(few) == {"in_progress": 5, "owed": 15}
    with few.ledger.reads() as connection:
        assert {*connection.scalars(select(TARGET.c.failures))} == {0}
    assert keys(look(few)) == KEYS[14:9:-1]
    with Ledger.open(few.ledger._engine.url.render_as_string(hide_password=False)) as other:
        # Another process goes on where one ended.
        few.ledger = other
        found, times = look_at_all(few)
        assert (keys(found), times) == (KEYS[9:3:-1], 2)
        assert counts(few) == {"in_progress": 16, "owed": 4}


def test_8_7_a_failed_run_is_repeated_at_its_time_although_its_flow_was_deployed_again(few: Place) -> None:
    few.deploy("core", kept([RAW], [CORE], mapper=BY_KEY, catchup="all", retries=1, retry_delay=timedelta(minutes=5)))
    look_at_all(few)
    few.end(only(few.update(RAW, "k00")), "failed")
    pause_and_resume(few)
    assert "k00" not in keys(look_at_all(few)[0])
    few.later(300)
    assert "k00" in keys(look_at_all(few)[0])


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
            found = place.deploy("core", flow(str(step)))
        elif what == "pause":
            found = pause_and_resume(place)
        elif waiting:
            decision = waiting.pop(random.randrange(len(waiting)))
            ran.append(f"{decision.target_key} {what}")
            found = place.run("core", decision, CORE) if what == "end" else place.end(decision, "failed")
        else:
            continue
        waiting = sorted([*waiting, *found, *look_at_all(place)[0]], key=lambda each: each.target_key or "")
    return [*ran, *(f"{each.target_key} goes on" for each in waiting)]
