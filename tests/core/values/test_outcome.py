"""What a task says about its outlets, and what becomes of it (2.1, 2.3 to 2.5)."""

import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.outcome import TaskOutcome
from assetflow.errors import InvalidEvent, OutletError, RecordingFailed
from tests.core.world import A, B, C

X, Y = AssetAlias("x"), AssetAlias("y")


def made(outcome: TaskOutcome, key: str | None = None) -> list[tuple[Any, ...]]:
    return [(u.asset.uri, dict(u.extra), u.partition_key, u.aliases) for u in outcome.updates(key)]


def test_rule_2_7_what_is_set_in_place_is_refused_at_its_line() -> None:
    extra = (outcome := TaskOutcome([A])).extra_of(A)
    extra["rows"] = 1
    for say in (extra.update, lambda told: extra.setdefault(*next(iter(told.items())))):
        with pytest.raises(RecordingFailed, match=rf"the update of {A.uri} .*: extra.price is not JSON"):
            say({"price": Decimal("1.5")})
    with pytest.raises(RecordingFailed, match=r"extra.price is not JSON"):
        extra["price"] = Decimal("1.5")
    assert pickle.loads(pickle.dumps(extra)) == extra == {"rows": 1}
    assert made(outcome) == [(A.uri, {"rows": 1}, None, ())]


def test_rule_1_6_an_update_has_all_names_that_the_task_gives_to_the_uri() -> None:
    named = [Asset("s3://b/n", name=name) for name in ("sales", "revenue", "sales")]
    outcome = TaskOutcome([*named, X, Y])
    outcome.add("x", named[0])
    outcome.add("y", named[1])
    expected = [(("sales", "revenue"), ()), (("sales", "revenue"), ("x", "y"))]
    assert [(each.asset.names, each.aliases) for each in outcome.updates()] == expected


def test_rule_2_3_assigning_an_extra_replaces_what_was_said() -> None:
    outcome = TaskOutcome([A])
    outcome.say(Asset(A.uri, name="other"), {"a": 1})
    outcome.assign(A, {"c": 3})
    outcome.extra_of(A)["d"] = 4
    assert made(outcome)[0][1] == {"c": 3, "d": 4}


@pytest.mark.parametrize(
    "say",
    [
        lambda o: o.say(B),
        lambda o: o.assign(B, {}),
        lambda o: o.extra_of(B),
        lambda o: o.add_partitions(B, "k"),
        lambda o: o.check_outlet(Asset.ref(name="nobody")),
        lambda o: o.add("y", A),
        lambda o: o.check_alias(Y),
    ],
)
def test_rule_2_3_what_is_no_outlet_is_an_error(say: Any) -> None:
    with pytest.raises(OutletError, match="not an outlet of the task"):
        say(TaskOutcome([A, X]))


def test_rule_2_4_an_outlet_that_is_also_added_to_an_alias_makes_two_events() -> None:
    outcome = TaskOutcome([A, X])
    outcome.add(X, A)
    assert len({update.event_id("task") for update in outcome.updates()}) == 2


def test_rule_2_5_only_partitions_and_none_named_is_no_update() -> None:
    outcome = TaskOutcome([A, B])
    outcome.update_partitions_only(A)
    assert [(uri, key) for uri, _, key, _ in made(outcome, "r")] == [(B.uri, "r")]
    assert [(each.asset, each.partition_key) for each in outcome.unchanged("r")] == [(A, "r")]
    outcome.add_partitions(A, "k")
    outcome.update_partitions_only(A)
    assert [(uri, key) for uri, _, key, _ in made(outcome, "r")] == [(A.uri, "k"), (B.uri, "r")]
    assert outcome.unchanged("r") == []


def test_rule_8_2_a_data_version_is_that_of_the_key_else_of_the_outlet() -> None:
    outcome = TaskOutcome([A, B, X])
    outcome.say(A, {"rows": 1}, data_version="whole")
    outcome.add_partitions(A, {"k": "own"})
    outcome.add_partitions(A, ["k", "l"])
    outcome.add_partitions(A, "m", data_version="m7")
    outcome.add(X, C, data_version="c1")
    assert [(each.asset.uri, each.partition_key, each.data_version) for each in outcome.updates()] == [
        (A.uri, "k", "own"),
        (A.uri, "l", "whole"),
        (A.uri, "m", "m7"),
        (B.uri, None, None),
        (C.uri, None, "c1"),
    ]


@pytest.mark.parametrize("version", ["", " ", 5, "v" * 251, "\x00"])
def test_rule_8_2_a_bad_data_version_is_refused_with_its_path(version: Any) -> None:
    outcome = TaskOutcome([A, X])
    calls: list[tuple[str, Callable[[], None]]] = [
        ("data_version is", lambda: outcome.say(A, data_version=version)),
        ("data_version is", lambda: outcome.set_version(A, version)),
        ("data_version is", lambda: outcome.add(X, C, data_version=version)),
        ("data_version of 'k' is", lambda: outcome.add_partitions(A, {"k": version})),
    ]
    for words, call in calls:
        with pytest.raises(InvalidEvent, match=words) as caught:
            call()
        assert (caught.value.rule, caught.value.where[:5]) == ("8.2", "s3://")
        assert "1 to 250" in caught.value.fix


@pytest.fixture
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], object]) -> None:
    """Call it in 8 threads that begin together."""
    barrier = Barrier(8)

    def begin(number: int) -> None:
        barrier.wait(30)
        work(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(8)))


@pytest.mark.usefixtures("_threads_take_turns_often")
def test_threads_that_name_partitions_at_the_same_time_lose_none() -> None:
    outcome = TaskOutcome([A])

    def add(number: int) -> None:
        for each in range(200):
            outcome.add_partitions(A, f"{number} {each}")

    at_once(add)
    assert len(outcome.updates()) == 1600
