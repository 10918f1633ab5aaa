"""Flows without a schedule stand in the data graph of a ledger, and are no consumers otherwise (chapter 8, Words)."""

from collections.abc import Sequence
from uuid import uuid4, uuid5

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger.records import ConsumerFilter
from tests.ledger.write.test_kept import BOARD, CORE, RAW, SPACE, Place, kept


def unscheduled(reads: Sequence[Asset], makes: Sequence[Asset], code: str | None = None) -> FlowDeclaration:
    outputs = tuple(Output(each.token, tuple(read.token for read in reads), code) for each in makes)
    return FlowDeclaration(ConsumerOptions(), tuple(makes), tuple(reads), outputs)


def ran(place: Place, name: str, asset: Asset, code: str | None = None) -> list[Decision]:
    """Let a run that nobody here asked for update an asset, after it has read all of `RAW` that is there."""
    flow_run = SourceFlowRun(uuid4(), deployment_id=uuid5(SPACE, name))
    pins = {RAW.uri: place.ledger.reader.status().last_event}
    origin = Origin("task", flow_run=flow_run)
    event = AssetEvent(uuid4(), asset, place.later(), origin, inputs=pins, code_version=code)
    ((_, made),) = place.ledger.writer.events.record([Recording(uuid4(), (event,))], place.now)
    return made


def state(place: Place, asset: Asset) -> tuple[str, bool]:
    found = place.ledger.reader.freshness.status(asset.uri, None, place.now)
    return found.state, found.outdated


def test_lists_and_numbers_of_consumers_leave_it_out(place: Place) -> None:
    reader = place.ledger.reader
    place.deploy("core", unscheduled([RAW], [CORE]))
    assert reader.status().consumers == 0
    assert (reader.consumers.all(), reader.consumers.names(), reader.consumers.page(ConsumerFilter())) == ([], [], [])
    assert reader.consumers.listed(ConsumerFilter()) == ([], 0)
    place.update(RAW)
    (event,) = reader.events.find()
    assert [each.receipt.status for each in reader.receipts.of_event(event.id)] == ["no_consumer"]
    # Its page shows what a backfill runs.
    found = reader.consumers.named("core")
    assert found is not None
    assert found.consumer.schedule.describe() == "only when a person, a backfill or Prefect starts it"
    place.ledger.writer.consumers.remove(found.consumer.id, place.later())
    assert reader.consumers.all(removed=True) == []


def test_it_is_a_consumer_since_the_deploy_that_gave_it_a_schedule(place: Place) -> None:
    place.deploy("core", unscheduled([RAW], [CORE]))
    place.deploy("core", kept([RAW], [CORE]))
    since = place.now
    place.ledger.writer.consumers.switch(place.consumers["core"].id, paused=True, now=place.later())
    (found,) = place.ledger.reader.consumers.all()
    assert (found.consumer.paused, found.since) == (True, since)


def test_8_17_a_rebuilt_ledger_knows_what_it_read(place: Place) -> None:
    events = place.ledger.writer.events
    events.begin_adoption([])
    place.deploy("core", unscheduled([RAW], [CORE], code="1"))
    place.deploy("board", kept([CORE], [BOARD]))
    assert not place.update(RAW)
    for name, asset in (("core", CORE), ("board", BOARD), ("core", CORE)):
        assert not ran(place, name, asset, code="1" if name == "core" else None)
    assert not events.end_adoption(place.later())
    assert (state(place, CORE), state(place, BOARD)) == (("fresh", False), ("fresh", False))
    place.update(RAW)
    assert (state(place, CORE), state(place, BOARD)) == (("stale", True), ("fresh", True))
