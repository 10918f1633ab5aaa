"""Versions on a ledger: confirmations by skipped tasks, and observations of sources (contract 8.2)."""

from datetime import datetime
from uuid import uuid4, uuid5

import pytest
from sqlalchemy import select

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger.sql.freshness_tables import ITEM_VERSION, TARGET
from tests.ledger.making import NOW
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only


def confirmation(place: Place, name: str, decision: Decision, asset: Asset, *, occurred: datetime) -> Recording:
    """The recording of a skipped task in the run of a decision."""
    run = uuid5(decision.id, "run")
    place.ledger.writer.decisions.launched(decision.id, run, place.later())
    origin = Origin("task", flow_run=SourceFlowRun(run, deployment_id=place.consumers[name].deployment_id))
    event = AssetEvent(uuid4(), asset, occurred, origin, partition_key=decision.target_key)
    return Recording(uuid4(), confirmed=(event,), durable=occurred)


def record(place: Place, recording: Recording) -> list[Decision]:
    ((_, made),) = place.ledger.writer.events.record([recording], place.later())
    return made


def verdict(place: Place) -> str:
    """What was said last of the only target; "" if it is up to date."""
    with place.ledger.reads() as connection:
        return connection.scalar(select(TARGET.c.verdict)) or ""


def observation(asset: Asset, version: str, *, key: str | None = None, durable: datetime | None = None) -> Recording:
    seen = AssetEvent(uuid4(), asset, NOW, Origin("task"), partition_key=key, data_version=version)
    return Recording(uuid4(), observed=(seen,), durable=durable)


def versions(place: Place, asset: Asset) -> list[str | None]:
    return [each.data_version for each in place.ledger.reader.events.find() if each.uri == asset.uri]


def test_a_confirmation_that_comes_again_after_an_update_changes_nothing(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    place.run("core", only(place.update(RAW)), CORE)
    skipped = only(place.update(RAW))
    late = confirmation(place, "core", skipped, CORE, occurred=place.later())
    record(place, late)
    place.end(skipped)
    newest = only(place.update(RAW))
    place.run("core", newest, CORE)
    record(place, late)
    with place.ledger.reads() as connection:
        rows = connection.execute(select(ITEM_VERSION.c.confirms).where(ITEM_VERSION.c.uri == CORE.uri)).scalars()
        assert sorted(rows) == [0, 0, 1]
    assert verdict(place) == ""


def test_an_observation_from_before_an_update_has_not_seen_it(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    old = observation(RAW, "1", durable=place.later())
    record(place, old)
    place.update(RAW, version="2")
    place.update(RAW, version="1")
    record(place, old)
    with place.ledger.reads() as connection:
        seen = connection.execute(select(ITEM_VERSION.c.seen).order_by(ITEM_VERSION.c.sequence)).scalars().all()
    assert seen == [old.durable, None, None]


def test_an_update_from_before_anything_compared_has_its_id_as_version(place: Place) -> None:
    place.update(RAW)
    place.deploy("core", kept([RAW], [CORE]))
    (event,) = place.ledger.reader.events.find()
    with place.ledger.reads() as connection:
        assert connection.execute(select(ITEM_VERSION.c.data_version)).scalars().all() == [str(event.id)]


@pytest.mark.parametrize("eager", [True, False])
def test_rule_8_2_only_a_source_may_be_observed(place: Place, eager: bool) -> None:
    plain = FlowDeclaration(ConsumerOptions(to_schedule(RAW)), (CORE,), (RAW,))
    place.deploy("core", kept([RAW], [CORE]) if eager else plain)
    place.deploy("board", kept([CORE], [BOARD]) if eager else plain)
    record(place, observation(CORE, "1"))
    assert versions(place, CORE) == []
    (refused,) = place.ledger.reader.events.refused()
    assert (refused.rule, CORE.uri in refused.reason) == ("8.2", True)
