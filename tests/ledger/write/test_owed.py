"""What a flow with keys owes after a deploy or a pause is asked for in parts (contract 8.18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from assetflow import Asset
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.consumers import Decision
from assetflow.ledger import Ledger
from tests.ledger.sql.test_plans import statements
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept

KEYS = [f"k{number:02}" for number in range(20)]
FLOW = kept([RAW], [CORE], mapper=IdentityMapper(), catchup="all", code="1")


@pytest.fixture
def place(sqlite_ledger: Ledger) -> Place:
    found = Place(sqlite_ledger)
    for key in KEYS:
        found.update(RAW, key)
    return found


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


def test_8_18_everything_owed_runs_once(place: Place) -> None:
    waiting, ran = [*place.deploy("core", FLOW)], list[Decision]()
    while waiting:
        ran.append(waiting.pop())
        waiting += place.run("core", ran[-1], CORE, code="1")
    assert keys(ran) == KEYS[::-1]
    assert counts(place) == {}


def test_8_8_a_later_change_of_an_owed_key_does_not_wait(place: Place) -> None:
    place.deploy("core", FLOW)
    assert keys(place.update(RAW, "k00")) == ["k00"]
    assert counts(place) == {"in_progress": 17, "owed": 3}


def test_8_6_what_is_below_waits_for_an_owed_key(place: Place) -> None:
    for asset in (CORE, RAW):
        for key in KEYS:
            place.update(asset, key)
    assert len(place.deploy("core", FLOW)) == 16
    assert not place.deploy("board", kept([CORE], [BOARD], mapper=IdentityMapper(), catchup="all"))
    assert counts(place, "board") == {"waits": 20}


def test_8_18_a_pause_keeps_what_is_owed(place: Place) -> None:
    made = place.deploy("core", FLOW)
    number = place.consumers["core"].id
    place.ledger.writer.consumers.switch(number, paused=True, now=place.later())
    assert not place.run("core", made[0], CORE)
    _, resumed = place.ledger.writer.consumers.switch(number, paused=False, now=place.later())
    assert keys(resumed) == ["k03"]


def test_8_16_the_plan_says_that_greater_keys_go_first(place: Place) -> None:
    place.deploy("core", FLOW)
    (found,) = place.ledger.reader.freshness.plan(place.now)
    held = next(each for each in found.targets if each.partition_key == "k00")
    assert (held.verdict, held.looked_at) == ("owed", "when runs of greater keys end")
    assert held.words.startswith("19 newer keys go first (catchup)")
    assert found.words == "Of 20 keys: 16 running and 4 after newer keys."


@pytest.mark.parametrize("catchup", ["all", "latest", "none"])
def test_8_16_a_deploy_judges_any_number_of_keys_with_the_same_statements(
    sqlite_ledger: Ledger, catchup: Literal["all", "latest", "none"]
) -> None:
    place, sent = Place(sqlite_ledger), list[int]()
    place.deploy("first", kept([RAW], [CORE]))
    for number in (20, 200):
        raw, core = Asset(f"s3://raw/{number}"), Asset(f"s3://core/{number}")
        for key in range(number):
            place.update(raw, str(key))
            place.update(core, str(key))
        for code in ("1", "2"):
            flow = kept([raw], [core], mapper=IdentityMapper(), catchup=catchup, code=code)
            with statements(sqlite_ledger) as found:
                place.deploy(f"flow {number}", flow)
            sent.append(len(found))
    assert sent[:2] == sent[2:]
