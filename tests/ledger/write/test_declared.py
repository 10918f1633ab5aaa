"""What deployments declare, and what Prefect tells of them: assets, makers and watchers."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from assetflow import AssetWatcher
from assetflow.core.graph.lineage import Learned, Node
from assetflow.core.values.assets import Asset, Outlet
from assetflow.core.watchers.intake import CursorStep, Note, RefusedChange, WatcherIntake
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.operations.lookup import find_uri
from assetflow.watchers import FileTrigger
from tests.ledger.making import NOW, A, B, declared, deploy, update

SALES = Asset("s3://lake/sales", name="sales", group="shop", extra={"owner": "till"})
LATER = NOW + timedelta(minutes=1)


def declare(ledger: Ledger, *produces: Outlet, reads: tuple[Outlet, ...] = (), of: UUID | None = None) -> UUID:
    deployment = of or uuid4()
    told = declaration_to_text(FlowDeclaration(produces=produces, reads=reads))
    ledger.writer.lineage.declare(deployment, "ingest/hourly", told, NOW)
    return deployment


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


def test_rule_1_6_a_name_that_becomes_known_is_a_pass(ledger: Ledger) -> None:
    consumer = deploy(ledger, Asset.ref(name="sales") & Asset(SALES.uri))
    assert ledger.writer.events.record([update(Asset(SALES.uri))], NOW)[0][1] == []
    told = declaration_to_text(FlowDeclaration(produces=(SALES,)))
    decisions = ledger.writer.lineage.declare(uuid4(), "ingest/hourly", told, LATER)
    assert [each.consumer for each in decisions] == [consumer.id]


DBT = Learned(uuid4(), "dbt/nightly", (B,), (A,))


@pytest.mark.rule("2.9")
def test_learned_makers_are_in_the_lineage_until_they_are_deleted(ledger: Ledger) -> None:
    lineage = ledger.writer.lineage
    for _ in range(2):
        lineage.learn(DBT, NOW)
    edges = ledger.reader.lineage.edges_of([Node("flow", "dbt/nightly")])
    expected = [(A.uri, "dbt/nightly"), ("dbt/nightly", B.uri)]
    assert [(each.source.value, each.target.value) for each in edges] == expected
    assert ledger.reader.assets.get(uri=A.uri) is not None
    ledger.writer.consumers.forget(DBT.deployment_id, NOW)
    assert ledger.reader.lineage.edges_of([Node("flow", "dbt/nightly")]) == []


ONE, TWO = UUID(int=1), UUID(int=2)
FILES = FileTrigger("/in/*")
SOURCE = "amqp://mq:5672/ orders"


def declare_watchers(ledger: Ledger, deployment: UUID, *watchers: AssetWatcher, uri: str = "s3://lake/a") -> None:
    ledger.writer.lineage.declare(deployment, f"f/{deployment.int}", declared(Asset(uri, watchers=watchers)), NOW)


def watched(ledger: Ledger) -> dict[str, list[str]]:
    return {each.name: [asset.uri for asset in each.assets] for each in ledger.reader.watchers.all()}


def test_rule_10_1_a_watcher_has_the_assets_of_all_its_deployments_and_goes_with_the_last(ledger: Ledger) -> None:
    declare_watchers(ledger, ONE, AssetWatcher("w", FILES))
    declare_watchers(ledger, TWO, AssetWatcher("w", FILES), uri="s3://lake/b")
    assert watched(ledger) == {"w": ["s3://lake/a", "s3://lake/b"]}
    declare_watchers(ledger, ONE)
    assert watched(ledger) == {"w": ["s3://lake/b"]}
    before = ledger.reader.watchers.latest_change()
    ledger.writer.consumers.forget(TWO, NOW)
    assert watched(ledger) == {}
    assert ledger.reader.watchers.latest_change() != before


def test_rule_10_4_a_cursor_outlives_a_redeploy_and_goes_when_the_watcher_looks_elsewhere(ledger: Ledger) -> None:
    declare_watchers(ledger, ONE, AssetWatcher("w", FILES))
    ledger.writer.watchers.record(WatcherIntake("file://", cursor=CursorStep("w", {"/in/a": [1]})), NOW)
    ledger.writer.watchers.switch("w", paused=True, now=NOW)
    declare_watchers(ledger, ONE, AssetWatcher("w", replace(FILES, every=timedelta(seconds=9))))
    (kept,) = ledger.reader.watchers.all()
    assert (kept.begun, kept.paused, ledger.reader.watchers.items("w")) == (True, True, {"/in/a": [1]})
    declare_watchers(ledger, ONE, AssetWatcher("w", FileTrigger("/elsewhere/*")))
    (moved,) = ledger.reader.watchers.all()
    assert (moved.begun, moved.paused, ledger.reader.watchers.items("w")) == (False, True, {})


def test_rule_10_2_what_comes_again_is_neither_recorded_nor_counted_again(ledger: Ledger) -> None:
    declare_watchers(ledger, ONE, AssetWatcher("w", FILES))
    recording, refused = update(A), RefusedChange(uuid4(), {}, "not JSON", ("w",))
    made = {event.id: ("w",) for event in recording.events}
    intake = WatcherIntake(SOURCE, [recording], [refused], made, notes=[Note(uuid4(), "d")])
    ledger.writer.watchers.record(intake, NOW)
    ledger.writer.watchers.record(replace(intake, notes=[]), NOW)
    (watcher,) = ledger.reader.watchers.all()
    assert (watcher.updates, watcher.refused, watcher.last_update) == (1, 1, NOW)
    assert ledger.reader.watchers.notes(SOURCE) == intake.notes
    ledger.writer.watchers.acknowledged([intake.notes[0].token])
    assert ledger.reader.watchers.notes(SOURCE) == []
