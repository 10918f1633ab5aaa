"""What a run has read is kept by the ids of events, so that a rebuilt ledger knows it too (contract 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import uuid4, uuid5

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Pin, Recording, SourceFlowRun
from assetflow.core.wire import declaration_to_text
from assetflow.ledger import Ledger
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW
from tests.ledger.write.test_kept import CORE, LEFT, RAW, SPACE, kept

RUN = uuid4()


def updated(asset: Asset, at: datetime) -> Recording:
    return Recording(uuid4(), (AssetEvent(uuid4(), asset, at, Origin("api")),), at)


def made(asset: Asset, pins: Mapping[str, Pin], at: datetime) -> Recording:
    """The recording of a task of the flow `core` that read these events."""
    origin = Origin("task", flow_run=SourceFlowRun(RUN, deployment_id=uuid5(SPACE, "core")))
    places = {uri: pin.sequence for uri, pin in pins.items()}
    return Recording(uuid4(), (AssetEvent(uuid4(), asset, at, origin, inputs=places, read=pins),), at)


def minutes(number: float) -> datetime:
    return NOW + timedelta(minutes=number)


def owed_after_rebuild(ledger: Ledger, *recordings: Recording) -> int:
    """Return how many runs a ledger asks for that is made anew from these recordings."""
    text = declaration_to_text(kept([RAW], [CORE]))
    ledger.writer.consumers.deploy("core", uuid5(SPACE, "core"), None, text, paused=False, held=False, now=minutes(0))
    ledger.writer.events.begin_adoption([])
    for recording in recordings:
        ledger.writer.events.record([recording], minutes(60))
    return len(ledger.writer.events.end_adoption(minutes(60)))


@pytest.mark.parametrize("before", [0, 5], ids=["places are lower than they were", "places are higher"])
def test_rule_8_2_a_rebuilt_ledger_owes_nothing_that_was_read(new_ledger: NewLedger, before: int) -> None:
    others = [updated(LEFT, minutes(1)) for _ in range(before)]
    raw = updated(RAW, minutes(2))
    pin = Pin(3, raw.events[0].id, minutes(2))

    assert owed_after_rebuild(new_ledger(), *others, raw, made(CORE, {RAW.uri: pin}, minutes(4))) == 0


@pytest.mark.parametrize("before", [0, 5], ids=["places are lower than they were", "places are higher"])
def test_rule_8_2_a_rebuilt_ledger_owes_what_came_during_the_run(new_ledger: NewLedger, before: int) -> None:
    others = [updated(LEFT, minutes(1)) for _ in range(before)]
    raw, later = updated(RAW, minutes(2)), updated(RAW, minutes(3))
    pin = Pin(3, raw.events[0].id, minutes(2))

    assert owed_after_rebuild(new_ledger(), *others, raw, later, made(CORE, {RAW.uri: pin}, minutes(4))) == 1


@pytest.mark.parametrize(("recorded", "owed"), [(2.5, 1), (3, 0)])
def test_rule_8_2_a_ledger_without_the_event_takes_the_newest_up_to_its_instant(
    new_ledger: NewLedger, recorded: float, owed: int
) -> None:
    raw, later = updated(RAW, minutes(2)), updated(RAW, minutes(3))
    unknown = Pin(9, uuid4(), minutes(recorded))

    assert owed_after_rebuild(new_ledger(), raw, later, made(CORE, {RAW.uri: unknown}, minutes(4))) == owed


def test_a_ledger_stores_its_own_places(new_ledger: NewLedger) -> None:
    ledger, raw = new_ledger(), updated(RAW, minutes(2))
    owed_after_rebuild(ledger, raw, made(CORE, {RAW.uri: Pin(7, raw.events[0].id, minutes(2))}, minutes(4)))

    assert [dict(each.inputs) for each in ledger.reader.events.find()] == [{}, {RAW.uri: 1}]
