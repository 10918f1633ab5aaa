"""Freshness policies on a ledger: their states at their instants, and the outbox of what Prefect has to be told."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from tests.ledger.write.test_kept import Place, kept, only

HOUR = timedelta(hours=1)
RAW = Asset("s3://lake/raw")
CORE = Asset("s3://lake/core", freshness=FreshnessPolicy(HOUR, warn_after=timedelta(minutes=30)))


def passes(place: Place, span: timedelta = timedelta()) -> None:
    place.later(span.total_seconds() or 1)
    place.ledger.writer.clock.run(place.now, place.now)


def told(place: Place) -> list[tuple[str, datetime]]:
    return [(each.change.state, each.change.at) for each in reversed(place.ledger.reader.policies.changes())]


def made(place: Place) -> datetime:
    """Deploy a flow with a policy, and let it make its asset; return when the source has other data than it read."""
    place.deploy("core", kept([RAW], [CORE], on=()))
    place.run("core", only(place.update(RAW)), CORE)
    place.update(RAW)
    return place.now


def test_8_13_an_update_that_is_heard_of_late_counts_at_its_instant(place: Place) -> None:
    stale = made(place)
    fresh = stale + timedelta(minutes=40)
    place.later(5 * HOUR.total_seconds())
    event = AssetEvent(uuid4(), CORE, fresh, Origin("api"), inputs={RAW.uri: 3})
    place.ledger.writer.events.record([Recording(uuid4(), (event,), durable=fresh)], place.now)
    place.ledger.writer.clock.run(place.now, place.now)
    assert told(place) == [("warn", stale + HOUR / 2), ("pass", fresh)]


def test_8_12_data_that_stays_the_same_is_as_old_as_it_was_before_a_late_update_confirmed_it(place: Place) -> None:
    step = Asset("s3://lake/step")
    place.deploy("step", kept([RAW], [step], on=()))
    place.deploy("core", kept([step], [CORE], on=()))
    start = place.now

    def record(asset: Asset, minute: int, inputs: Mapping[str, int], heard: int | None = None) -> None:
        at, place.now = (start + timedelta(minutes=each) for each in (minute, heard or minute))
        event = AssetEvent(uuid4(), asset, at, Origin("api"), inputs=inputs, data_version="same" * bool(inputs) or None)
        place.ledger.writer.events.record([Recording(uuid4(), (event,), durable=at)], place.now)

    record(RAW, 1, {})
    record(step, 2, {RAW.uri: 1})
    record(CORE, 3, {step.uri: 2})
    record(RAW, 10, {})
    record(step, 11, {RAW.uri: 4})
    record(RAW, 20, {})
    record(step, 95, {RAW.uri: 6}, heard=300)
    passes(place)
    minutes = [(state, (at - start) / timedelta(minutes=1)) for state, at in told(place)]
    assert minutes == [("warn", 50), ("fail", 80), ("pass", 95)]


def test_8_13_a_change_has_an_id_of_asset_state_and_instant_and_is_told_until_the_log_has_it(place: Place) -> None:
    made(place)
    passes(place, 2 * HOUR)
    writer = place.ledger.writer.freshness
    first, second = writer.to_tell(10)
    assert first.id != second.id
    assert replace(second, number=9, maker=None).id == second.id
    assert (second.maker, second.flow_run is not None) == ("core", True)
    assert [(each.kind, each.uri) for each in second.change.causes] == [("data", RAW.uri)]
    assert second.describe() == (
        f"{CORE.uri} is too old: its data is 1 h old, and has to be at most 1 h old, because {RAW.uri} was updated"
    )
    writer.posted([first.number, second.number], place.now)
    assert [each.posted for each in writer.to_tell(10)] == [place.now, place.now]
    writer.stored([first.number], place.now)
    assert [each.number for each in writer.to_tell(10)] == [second.number]


def test_8_11_the_policy_of_an_asset_that_no_eager_flow_makes_outlives_the_deploys_of_others(place: Place) -> None:
    place.deploy("core", FlowDeclaration(ConsumerOptions(to_schedule(RAW)), (CORE,), (RAW,)))
    place.run("core", only(place.update(RAW)), CORE)
    place.update(RAW)
    stale = place.now
    place.deploy("other", FlowDeclaration(ConsumerOptions(to_schedule(CORE))))
    passes(place, 2 * HOUR)
    assert told(place) == [("warn", stale + HOUR / 2), ("fail", stale + HOUR)]


def test_8_17_a_rebuilt_ledger_tells_nothing_anew(place: Place) -> None:
    made(place)
    place.ledger.writer.events.begin_adoption([])
    place.later(5 * HOUR.total_seconds())
    place.ledger.writer.events.end_adoption(place.now)
    place.ledger.writer.clock.run(place.now, place.now)
    (found,) = place.ledger.reader.policies.all()
    assert found.record.state == "fail"
    assert told(place) == []


def with_policy(policy: FreshnessPolicy | None) -> Asset:
    return Asset(CORE.uri, freshness=policy)


@pytest.mark.parametrize("policy", [FreshnessPolicy(9 * HOUR), None], ids=["changed", "removed"])
@pytest.mark.parametrize("looked", [True, False])
def test_8_11_what_failed_before_a_redeploy_is_told(place: Place, policy: FreshnessPolicy | None, looked: bool) -> None:
    stale = made(place)
    if looked:
        passes(place, HOUR / 2)
    place.later(HOUR.total_seconds() / (1 + looked))
    # The clock has not looked yet at the instant at which the asset became too old.
    place.deploy("core", kept([RAW], [with_policy(policy)], on=()))
    changed = place.now
    passes(place)
    failed = [("warn", stale + HOUR / 2), ("fail", stale + HOUR)]
    assert told(place) == failed + ([] if policy is None else [("pass", changed)])
