"""An Eager or Lazy flow tries again what it tried or waived, because somebody asks for it (contract 8.7)."""

from __future__ import annotations

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.errors import InvalidCall, UnknownConsumer
from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only
from tests.ledger.write.test_lazy import BOARD as HOURLY_BOARD
from tests.ledger.write.test_lazy import lazy


@pytest.fixture
def place(sqlite_ledger: Ledger) -> Place:
    return Place(sqlite_ledger)


def retry(place: Place, name: str, key: str | None = None) -> list[str]:
    return place.names(place.ledger.writer.freshness.retry(place.consumers[name].id, key, place.later()))


def test_8_7_what_failed_runs_again_with_the_same_inputs(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    first = only(place.update(RAW))
    assert not place.end(first, "failed")

    second = only(place.ledger.writer.freshness.retry(place.consumers["core"].id, None, place.later()))
    assert second.id != first.id
    assert not place.run("core", second, CORE)
    assert retry(place, "core") == [], "nothing is out of date any more"


def test_8_7_a_retry_that_waits_runs_at_once(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1))
    assert not place.end(only(place.update(RAW)), "failed")
    assert retry(place, "core") == ["core"]
    assert not place.ledger.writer.clock.run(place.later(600), place.now).decisions


def test_8_7_what_catchup_waived_runs(place: Place) -> None:
    for key in ("a", "b", "c"):
        place.update(RAW, key)
    assert not place.deploy("core", kept([RAW], [CORE], mapper=IdentityMapper(), catchup="none"))
    assert retry(place, "core", "b") == ["core b"]
    assert retry(place, "core") == ["core a", "core c"]


def test_8_7_a_lazy_flow_tries_again(place: Place) -> None:
    place.deploy("board", lazy([RAW], [HOURLY_BOARD], retries=0))
    assert not place.end(only(place.update(RAW)), "failed")
    place.ledger.writer.freshness.retry(place.consumers["board"].id, None, place.later())
    (found,) = place.ledger.reader.freshness.plan(place.now)
    assert found.targets[0].verdict != "tried"


def test_8_7_a_run_that_goes_on_is_not_doubled(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    place.update(RAW)
    assert retry(place, "core") == []


def test_8_7_a_retry_of_nothing_is_refused(place: Place) -> None:
    place.deploy("plain", kept([RAW], [CORE]))
    place.deploy("keyed", kept([RAW], [BOARD], mapper=IdentityMapper()))
    place.deploy("events", FlowDeclaration(ConsumerOptions(to_schedule(RAW))))
    writer, later = place.ledger.writer.freshness, place.later()
    with pytest.raises(InvalidCall, match="plain is not partitioned"):
        writer.retry(place.consumers["plain"].id, "a", later)
    with pytest.raises(InvalidCall, match="keyed has no key 'a'"):
        writer.retry(place.consumers["keyed"].id, "a", later)
    with pytest.raises(InvalidCall, match="the schedule of events is not Eager"):
        writer.retry(place.consumers["events"].id, None, later)
    with pytest.raises(UnknownConsumer):
        writer.retry(99, None, later)


@pytest.mark.parametrize("retries", [0, 1])
def test_8_7_a_redeploy_without_retries_ends_the_one_that_waits(place: Place, retries: int) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1))
    place.end(only(place.update(RAW)), "failed")
    assert not place.deploy("core", kept([RAW], [CORE], retries=retries, lookback=9))

    place.later(3600)

    assert len(place.ledger.writer.clock.run(place.now, place.now).decisions) == retries
