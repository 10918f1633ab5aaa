"""Assets that deployed flows declare to make or read are known from then on, and never start a run."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset, AssetAlias, Outlet, distinct
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import NameTaken
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


@pytest.mark.parametrize("has_schedule", [True, False])
def test_rule_1_2_a_uri_that_was_only_updated_gives_its_name_up(ledger: Ledger, has_schedule: bool) -> None:
    ledger.writer.events.record([update(Asset("sales"))], NOW)
    waits = deploy(ledger, Asset.ref(name="sales"))
    if has_schedule:
        deploy(ledger, SALES, name="second/d")
    else:
        declare(ledger, SALES)
    assert ledger.reader.assets.owner_of("sales") == find_uri(ledger.reader, "sales") == SALES.uri
    assert find_uri(ledger.reader, "asset:sales") == "sales"
    [(_, decisions)] = ledger.writer.events.record([update(Asset(SALES.uri))], LATER)
    assert waits.id in [each.consumer for each in decisions]
    [(recorded, decisions)] = ledger.writer.events.record([update(Asset("sales"))], LATER)
    assert (decisions, len(recorded.warnings)) == ([], 1)


@pytest.mark.parametrize("has_schedule", [True, False])
def test_rule_1_2_a_uri_that_another_flow_declares_keeps_its_name(ledger: Ledger, has_schedule: bool) -> None:
    ledger.writer.events.record([update(Asset("sales"))], NOW)
    if has_schedule:
        deploy(ledger, Asset("sales"))
    else:
        declare(ledger, reads=(Asset("sales"),))
    declare(ledger, SALES)
    assert find_uri(ledger.reader, "sales") == "sales"
    with pytest.raises(NameTaken):
        deploy(ledger, SALES, name="second/d")


def test_rule_1_2_a_name_stays_where_one_declaration_gives_it_twice(ledger: Ledger) -> None:
    declare(ledger, Asset("sales"), SALES)
    assert find_uri(ledger.reader, "sales") == "sales"
    declare(ledger, SALES, of=ledger.reader.lineage.declared()[0].deployment_id)
    assert find_uri(ledger.reader, "sales") == SALES.uri


def test_its_number_stays(ledger: Ledger) -> None:
    declare(ledger, SALES)
    number = ledger.reader.assets.numbers([SALES.uri])
    ledger.writer.events.record([update(SALES)], LATER)
    assert ledger.reader.assets.numbers([SALES.uri]) == number
    (asset,) = ledger.reader.assets.all()
    assert (asset.names, asset.first_seen) == (("sales",), NOW)


def test_rule_1_6_a_reference_finds_every_name_that_a_flow_declares(ledger: Ledger) -> None:
    consumers = [deploy(ledger, Asset.ref(name=name), name=f"{name}/d") for name in ("sales", "revenue")]
    declare(ledger, *distinct([SALES, Asset(SALES.uri, name="revenue")]))
    [(_, decisions)] = ledger.writer.events.record([update(Asset(SALES.uri))], LATER)
    assert [each.consumer for each in decisions] == [each.id for each in consumers]


def test_rule_1_6_a_name_that_becomes_known_is_a_pass(ledger: Ledger) -> None:
    consumer = deploy(ledger, Asset.ref(name="sales") & Asset(SALES.uri))
    assert ledger.writer.events.record([update(Asset(SALES.uri))], NOW)[0][1] == []
    told = declaration_to_text(FlowDeclaration(produces=(SALES,)))
    decisions = ledger.writer.lineage.declare(uuid4(), "ingest/hourly", told, LATER)
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
    assert asset.name == "sales"
    assert find_uri(ledger.reader, "sales") == SALES.uri


def test_listeners_hear_of_it(ledger: Ledger) -> None:
    seen = ledger.reader.feed.end()
    declare(ledger, SALES)
    ((_, asset),) = ledger.reader.feed.after(seen).assets
    assert (asset.uri, asset.group) == (SALES.uri, "shop")
