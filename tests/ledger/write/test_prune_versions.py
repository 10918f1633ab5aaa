"""Pruning removes old versions, and changes neither how old data is nor what is out of date. Contract 8.9, 8.12."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from assetflow.core.shapes import as_json
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import Place, kept, only

DAY = timedelta(days=1)
RAW, FACT = Asset("s3://lake/raw"), Asset("s3://lake/fact")
BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(300 * DAY))


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


def prune(place: Place, age: timedelta = timedelta()) -> None:
    writer, before = place.ledger.writer, place.now - age
    step = writer.prune(before)
    while step.upto is not None:
        step = writer.prune(before, step.upto)


def versions(place: Place, asset: Asset) -> int:
    return len(place.ledger.reader.freshness.versions(asset.uri))


def facts(place: Place) -> Sequence[object]:
    """What is said of the assets: states, causes, plan, and how old the data of those with a policy is."""
    reader = place.ledger.reader
    statuses = [(each.uri, each.state, each.causes) for each in reader.freshness.statuses(None, place.now)]
    plan = [as_json(each) for each in reader.freshness.plan(place.now)]
    return [statuses, plan, [(each.uri, each.record.data_time) for each in reader.policies.all()]]


def judged(place: Place) -> datetime | str | None:
    """Let the clock judge the policy anew, and return the data time."""
    place.later(DAY.total_seconds())
    place.ledger.writer.clock.run(place.now, place.now)
    (found,) = place.ledger.reader.policies.all()
    return found.record.data_time  # pyright: ignore[reportReturnType]


def chain(place: Place) -> datetime:
    """Make a board of a fact of raw data; return when the raw data was updated that the board lacks."""
    place.deploy("core", kept([RAW], [FACT]))
    place.deploy("report", kept([FACT], [BOARD], on=()))
    place.run("report", only(place.run("core", only(place.update(RAW)), FACT)), BOARD)
    place.later(DAY.total_seconds())
    return again(place)


def again(place: Place) -> datetime:
    """Update the raw data, and let the fact be made again; return when the data was updated."""
    decision = only(place.update(RAW))
    updated = place.now
    place.run("core", decision, FACT)
    return updated


def test_8_12_the_data_time_is_that_of_the_first_version_that_was_not_read(place: Place) -> None:
    stale = chain(place)
    for _ in range(3):
        place.later(100 * DAY.total_seconds())
        again(place)
    before = facts(place)
    prune(place)
    assert facts(place) == before
    # The update judges the policy again, with what is left.
    again(place)
    assert judged(place) == stale


def test_8_12_what_was_read_before_a_redeploy_stays(place: Place) -> None:
    stale = chain(place)
    place.deploy("report", kept([], [BOARD], on=()))
    for _ in range(3):
        place.later(100 * DAY.total_seconds())
        again(place)
    prune(place)
    again(place)
    assert judged(place) == stale


def test_versions_that_nothing_was_made_from_go(place: Place) -> None:
    place.deploy("core", kept([RAW], [FACT]))
    for _ in range(5):
        place.run("core", only(place.update(RAW)), FACT)
    place.later(10 * DAY.total_seconds())
    prune(place)
    assert (versions(place, RAW), versions(place, FACT)) == (1, 1)
    place.run("core", only(place.update(RAW)), FACT)
    assert facts(place)[0] == [(FACT.uri, "fresh", ()), (RAW.uri, "source", ())]


def test_young_versions_stay(place: Place) -> None:
    place.deploy("core", kept([RAW], [FACT]))
    for _ in range(3):
        place.run("core", only(place.update(RAW)), FACT)
    prune(place, DAY)
    assert (versions(place, RAW), versions(place, FACT)) == (3, 3)


def test_8_6_inputs_that_were_tried_stay_tried(place: Place) -> None:
    """The version that a run tried comes back after another one: it is not tried again."""
    place.deploy("core", kept([RAW], [FACT]))
    place.end(only(place.update(RAW, version="1")), "failed")
    place.deploy("core", kept([RAW], [FACT]), paused=True)
    place.ledger.writer.consumers.switch(place.consumers["core"].id, paused=True, now=place.later())
    for version in ("2", "3", "1"):
        place.update(RAW, version=version)
    place.later(10 * DAY.total_seconds())
    prune(place)
    _, made = place.ledger.writer.consumers.switch(place.consumers["core"].id, paused=False, now=place.later())
    assert made == []


def test_8_5_the_update_that_an_output_is_compared_with_stays(place: Place) -> None:
    """Another flow updates the output from something else: it is compared with the update before."""
    place.deploy("core", kept([RAW], [FACT]))
    other = Asset("s3://lake/other")
    place.deploy("patch", FlowDeclaration(ConsumerOptions(to_schedule(other)), (FACT,), (other,)))
    place.run("core", only(place.update(RAW)), FACT)
    for _ in range(2):
        patched = only(place.update(other))
        place.make("patch", patched, FACT, pins={other.uri: 99})
        place.end(patched)
    before = facts(place)
    place.later(10 * DAY.total_seconds())
    prune(place)
    assert facts(place) == before
