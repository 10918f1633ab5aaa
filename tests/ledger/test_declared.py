"""Assets that deployed flows declare to make or read are known from then on, and never start a run."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.assets import Asset, AssetAlias, Outlet
from assetflow.core.codec import FlowDeclaration, declaration_to_text
from assetflow.core.schedule_values import to_schedule
from assetflow.core.schedules import ConsumerOptions
from assetflow.errors import UnknownAsset
from assetflow.ledger import Ledger
from assetflow.ledger.read.assets import AssetFilter
from assetflow.operations.lookup import find_uri, near_assets
from tests.ledger.making import NOW, A, B, deploy, update

SALES = Asset("s3://lake/sales", name="sales", group="shop", extra={"owner": "till"})
LATER = NOW + timedelta(minutes=1)


def declare(ledger: Ledger, *produces: Outlet, reads: tuple[Outlet, ...] = (), of: UUID | None = None) -> UUID:
    """Declare a deployment without a schedule."""
    deployment = of or uuid4()
    told = declaration_to_text(FlowDeclaration(produces=produces, reads=reads))
    ledger.writer.lineage.declare(deployment, "ingest/hourly", told, NOW)
    return deployment


def test_what_a_deployment_makes_and_reads_is_listed_at_once(ledger: Ledger) -> None:
    declare(ledger, SALES, AssetAlias("late"), reads=(A, Asset.ref(name="b"), Asset.ref(uri="s3://lake/c")))
    found, total = ledger.reader.assets.page()
    assert total == 2
    assert {each.record.uri: each.name for each in found} == {SALES.uri: "sales", A.uri: A.uri}
    sales = next(each for each in found if each.record.uri == SALES.uri)
    assert (sales.record.group, sales.record.extra, sales.record.first_seen) == ("shop", {"owner": "till"}, NOW)
    assert (sales.last_event, sales.last_time) == (None, None)
    assert list(ledger.reader.assets.users_of([sales.record])[SALES.uri].producers) == ["ingest/hourly"]


def test_what_a_consumer_declares_is_listed_too(ledger: Ledger) -> None:
    schedule = to_schedule(Asset(A.uri, group="raw"))
    told = declaration_to_text(FlowDeclaration(ConsumerOptions(schedule), produces=(SALES,)))
    consumer, _ = ledger.writer.consumers.deploy("f/d", uuid4(), None, told, False, False, NOW)
    listed = {each.uri: each.group for each in ledger.reader.assets.all()}
    assert listed == {A.uri: "raw", SALES.uri: "shop"}
    told = declaration_to_text(FlowDeclaration(ConsumerOptions(schedule), produces=(B,)))
    ledger.writer.consumers.change(consumer.id, told, LATER)
    assert {each.uri for each in ledger.reader.assets.all()} == {A.uri, B.uri, SALES.uri}


def test_it_is_found_by_the_declared_name(ledger: Ledger) -> None:
    declare(ledger, SALES)
    assert find_uri(ledger.reader, "sales") == find_uri(ledger.reader, "s3://lake/sales/") == SALES.uri
    assert near_assets(ledger.reader, "slaes")[0] == "sales"
    assert [each.name for each in ledger.reader.assets.page(AssetFilter(search="SALE"))[0]] == ["sales"]
    assert [each.name for each in ledger.reader.assets.page(AssetFilter(name=("ale",)))[0]] == ["sales"]


def test_a_declared_name_hides_neither_a_uri_nor_a_name(ledger: Ledger) -> None:
    declare(ledger, Asset("x", name="y"), Asset("y", name="s3://lake/a"), Asset("z", name="taken"))
    deploy(ledger, Asset("s3://lake/b", name="taken"))
    assert find_uri(ledger.reader, "y") == "y"
    assert find_uri(ledger.reader, "taken") == "s3://lake/b"
    ledger.writer.events.record([update(A)], NOW)
    assert find_uri(ledger.reader, A.uri) == A.uri


def test_its_number_stays_and_its_first_update_counts_as_new(ledger: Ledger) -> None:
    declare(ledger, SALES)
    number = ledger.reader.assets.numbers([SALES.uri])
    [(recorded, _)] = ledger.writer.events.record([update(SALES)], LATER)
    assert recorded.new_assets == [SALES.uri]
    assert ledger.reader.assets.numbers([SALES.uri]) == number
    (asset,) = ledger.reader.assets.all()
    assert (asset.names, asset.first_seen) == (("sales",), NOW)


def test_a_declared_name_means_nothing_to_conditions(ledger: Ledger) -> None:
    consumer = deploy(ledger, Asset.ref(name="sales"))
    declare(ledger, SALES)
    assert ledger.reader.assets.owner_of("sales") is None
    assert ledger.writer.events.record([update(Asset(SALES.uri))], NOW)[0][1] == []
    [(_, decisions)] = ledger.writer.events.record([update(SALES)], LATER)
    assert [each.consumer for each in decisions] == [consumer.id]


def test_a_ledger_that_looked_for_the_asset_before_knows_it_afterwards(ledger: Ledger) -> None:
    ledger.writer.events.record([update(A)], NOW)
    consumer = deploy(ledger, SALES & A)
    ledger.writer.consumers.remove(consumer.id, NOW)
    declare(ledger, B, SALES)
    ledger.writer.events.record([update(B, SALES)], NOW)
    assert len(ledger.reader.assets.all()) == 3


def test_another_process_hears_of_it(ledger: Ledger) -> None:
    ledger.writer.events.record([update(A)], NOW)
    with ledger.writes() as connection:
        url = connection.engine.url
    with Ledger.open(url.render_as_string(hide_password=False)) as other:
        declare(other, B)
    ledger.writer.events.record([update(B)], NOW)
    assert [each.uri for each in ledger.reader.assets.all()] == [A.uri, B.uri]


def test_it_stays_when_the_deployment_goes(ledger: Ledger) -> None:
    deployment = declare(ledger, SALES)
    ledger.writer.consumers.forget(deployment, NOW)
    (asset,) = ledger.reader.assets.page()[0]
    assert asset.name == SALES.uri
    with pytest.raises(UnknownAsset):
        find_uri(ledger.reader, "sales")


def test_listeners_hear_of_it(ledger: Ledger) -> None:
    seen = ledger.reader.feed.end()
    declare(ledger, SALES)
    ((_, asset),) = ledger.reader.feed.after(seen).assets
    assert (asset.uri, asset.group) == (SALES.uri, "shop")
