"""What the ledger says of chapter 8: the status of assets, plans and versions, with few statements (8.9, 8.16)."""

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from assetflow import Eager
from assetflow.core.explain.plan import MOST_TARGETS
from assetflow.core.explain.status import MOST_CAUSES, Status
from assetflow.core.freshness.records import RunState
from assetflow.core.partitions import IdentityMapper
from assetflow.core.shapes import as_json, from_json
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.ledger import Ledger
from assetflow.ledger.records import DecisionRecord
from tests.ledger.making import NOW, A, B, C, deploy, deploy_maker, update
from tests.ledger.sql.test_plans import scans, statements

MINUTE = timedelta(minutes=1)
TABLES = ("item_version", "item", "reading", "target_key", "target", "kept_run", "event", "decision")
BY_KEY = Eager(A, default_partition_mapper=IdentityMapper())


def record(ledger: Ledger, asset: Asset, minute: int = 0, **fields: Any) -> list[Decision]:
    return ledger.writer.events.record([update(asset, **fields)], NOW + minute * MINUTE)[0][1]


def run(
    ledger: Ledger, made: Sequence[Decision | DecisionRecord], *outputs: Asset, outcome: RunState = "completed"
) -> None:
    """Let the run of the one decision update its outputs and end."""
    (decision,) = made
    for output in outputs:
        source = SourceFlowRun(decision.id, "make/x", deployment_id=decision.deployment_id)
        record(ledger, output, partition_key=decision.target_key, origin=Origin("task", flow_run=source))
    ledger.writer.decisions.ended(outcome.title(), NOW, decision_id=decision.id, outcome=outcome)


def status(ledger: Ledger, asset: Asset, key: str | None = None, minute: int = 0) -> Status:
    return ledger.reader.freshness.status(asset.uri, key, NOW + minute * MINUTE)


def states(ledger: Ledger, *assets: Asset) -> list[str]:
    return [each.state for each in ledger.reader.freshness.statuses([asset.uri for asset in assets], NOW)]


def words(ledger: Ledger, minute: int = 0) -> list[str]:
    return [each.words for each in ledger.reader.freshness.plan(NOW + minute * MINUTE)]


def test_8_9_an_asset_that_nobody_compares_is_unknown(ledger: Ledger) -> None:
    deploy(ledger, A)
    record(ledger, A)
    assert states(ledger, A) == ["unknown"]
    assert not ledger.reader.freshness.compares()
    assert ledger.reader.freshness.statuses(None, NOW) == []
    deploy_maker(ledger, A, [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(), [C], [Asset("s3://lake/other")], "make-c/x")
    assert states(ledger, A, B, C) == ["unknown", "unknown", "missing"]


def test_8_9_missing_then_fresh_then_stale(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/x")
    assert states(ledger, A, B) == ["unknown", "missing"]
    made = record(ledger, A)
    assert states(ledger, A, B) == ["source", "missing"]
    run(ledger, made, B)
    assert states(ledger, A, B) == ["source", "fresh"]
    record(ledger, A, minute=1, data_version="second")

    found = status(ledger, B, minute=13)

    (cause,) = found.causes
    assert (found.state, found.outdated, found.producer) == ("stale", True, "make/x")
    assert (cause.kind, cause.uri, cause.now, cause.since) == ("data", A.uri, "second", NOW + MINUTE)
    assert cause.words.endswith("… → second, 12 min ago, a run reads it now")
    assert from_json(Status, as_json(found)) == found


@pytest.mark.parametrize("outputs", [[B], [B, C]], ids=["one output", "two outputs"])
def test_8_9_counts_are_those_of_the_items(ledger: Ledger, outputs: list[Asset]) -> None:
    """Also with an input that every target reads, and a flow whose outputs are not all made."""
    whole = Asset("s3://lake/whole")
    record(ledger, whole)
    deploy_maker(ledger, BY_KEY, outputs, [A, whole], "make/x")
    for key in "1234":
        run(ledger, record(ledger, A, partition_key=key), *outputs[: 1 + (key == "1")])
    record(ledger, A, partition_key="5")
    record(ledger, A, partition_key="2")
    for moment in range(2):
        for output in outputs:
            found = status(ledger, output)
            each = [status(ledger, output, key).state for key in "12345"]
            assert found.counts == {
                state: each.count(state) for state in ("stale", "missing", "fresh") if state in each
            }
        if moment == 0:
            record(ledger, whole)
    assert status(ledger, B).counts == {"stale": 4, "missing": 1}


def test_8_9_fresh_keys_below_something_stale_are_outdated(ledger: Ledger) -> None:
    deploy_maker(ledger, BY_KEY, [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(B, default_partition_mapper=IdentityMapper()), [C], [B], "make-c/x")
    for key in "12":
        run(ledger, record(ledger, A, partition_key=key), B)
        run(ledger, ledger.reader.decisions.find(limit=1), C)
    assert (status(ledger, C).counts, status(ledger, C).outdated) == ({"fresh": 2}, False)
    record(ledger, A, partition_key="1")

    assert (status(ledger, C).counts, status(ledger, C).outdated) == ({"fresh": 2}, True)
    assert [status(ledger, C, key).outdated for key in "12"] == [True, False]


def test_8_9_the_list_has_everything_that_is_compared(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    deploy_maker(ledger, A, [B], [A], "make-b/x")
    found = [(each.uri, each.state) for each in ledger.reader.freshness.statuses(None, NOW)]
    assert found == [(A.uri, "unknown"), (B.uri, "missing"), (C.uri, "missing")]


def test_8_9_not_more_causes_than_people_read(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/x")
    run(ledger, record(ledger, A), B)
    for number in range(MOST_CAUSES + 20):
        record(ledger, A, partition_key=str(number))
    assert len(status(ledger, B).causes) == MOST_CAUSES


def test_8_16_a_plan_says_what_holds_each_target_back(ledger: Ledger) -> None:
    consumer = deploy_maker(ledger, Eager(retries=1), [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    assert words(ledger)[0] == f"It misses {A.uri}: {B.uri} was never made."
    made = record(ledger, A)
    assert words(ledger)[0] == "It runs, since 2026-01-01 12:00:00 UTC."
    run(ledger, made, outcome="failed")
    assert words(ledger)[0] == f"Failed on this data: {B.uri} was never made."
    assert words(ledger, minute=5)[0] == f"It would run now: {B.uri} was never made."
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOW)
    assert words(ledger)[0] == f"It is paused: {B.uri} was never made."


def test_8_16_a_plan_says_when_a_target_is_looked_at_next(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(retries=1), [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(), [C], [B, A], "make-c/x")
    run(ledger, record(ledger, A), outcome="failed")
    first, second = (each.targets[0] for each in ledger.reader.freshness.plan(NOW))
    assert (first.verdict, first.look, first.looked_at) == ("retry", NOW + 5 * MINUTE, "2026-01-01 12:05:00 UTC")
    assert (second.verdict, second.looked_at) == ("missing_input", f"when {B.uri} is updated")


def test_8_16_a_plan_of_very_many_keys_shows_some_and_counts_all(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(catchup="none", default_partition_mapper=IdentityMapper()), [C], [B], "other/x")
    keys = [f"{number:03}" for number in range(MOST_TARGETS + 30)]
    for key in keys:
        record(ledger, A, partition_key=key)
    deploy_maker(ledger, Eager(A, catchup="none", default_partition_mapper=IdentityMapper()), [B], [A], "make/x")
    record(ledger, A, partition_key=keys[0])

    made, _ = ledger.reader.freshness.plan(NOW)

    assert made.targets[0].verdict == "in_progress"
    assert len(made.targets) == MOST_TARGETS
    assert made.words == f"Of {len(keys)} keys: 1 running and {len(keys) - 1} skipped by catchup."


def test_8_2_versions_with_the_run_that_made_each(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/x", code_version="1")
    made = record(ledger, A, data_version="first")
    run(ledger, made, B)
    (newest,) = ledger.reader.freshness.versions(B.uri)
    (source,) = ledger.reader.freshness.versions(A.uri)
    assert (newest.producer, newest.flow_run_id, newest.read) == ("make/x", made[0].id, {A.uri: source.sequence})
    assert (source.data_version, source.producer, source.flow_run_id) == ("first", None, None)
    assert ledger.reader.freshness.versions(B.uri, before=newest.sequence) == []


def test_8_5_what_was_read_stands_beside_what_there_is_now(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/x")
    run(ledger, record(ledger, A, data_version="first"), B)
    record(ledger, A, data_version="second")
    (each,) = ledger.reader.freshness.explained(B.uri, None, NOW).reads
    assert (each.read, each.now, each.same) == ("first", "second", False)


def test_8_9_the_statements_do_not_grow_with_the_keys(sqlite_ledger: Ledger) -> None:
    ledger = sqlite_ledger
    deploy_maker(ledger, BY_KEY, [B], [A], "make/x")
    sent: list[int] = []
    for number in range(20):
        run(ledger, record(ledger, A, partition_key=f"{number:03}"), B)
        if number in (2, 19):
            record(ledger, A, partition_key="001")
            assert status(ledger, A).state == "source", "the flows are read once"
            with statements(ledger) as given:
                assert status(ledger, B).state == "stale"
                ledger.reader.freshness.plan(NOW)
            sent.append(len(given))
            assert not scans(ledger, given, TABLES)
            run(ledger, ledger.reader.decisions.find(limit=1), B)

    assert sent[0] == sent[1]


def layered(ledger: Ledger) -> list[Asset]:
    """Deploy five layers of 20 flows each: some are fresh, stale, missing or outdated, and some assets have keys."""
    layers = [[Asset(f"s3://lake/{layer}/{number:02}") for number in range(20)] for layer in range(6)]
    for layer, (above, below) in enumerate(pairwise(layers)):
        for number, made in enumerate(below):
            schedule = Eager() if number % 10 else Eager(default_partition_mapper=IdentityMapper())
            deploy_maker(ledger, schedule, [made], above[number : number + 3], f"make-{layer}/{number:02}")
    chance = random.Random(8)
    for above, layer in pairwise([[], *layers]):
        last = ledger.reader.status().last_event
        for asset in layer if not above else chance.sample(layer, 12):
            record(ledger, asset, inputs={each.uri: last for each in above})
            if asset.uri.endswith("0"):
                record(ledger, asset, partition_key=chance.choice("abc"))
    for asset in chance.sample(layers[0], 5):
        record(ledger, asset, minute=1, data_version="second")
    return [asset for layer in layers for asset in layer]


@pytest.fixture
def assets(sqlite_ledger: Ledger) -> list[Asset]:
    return layered(sqlite_ledger)


def test_8_9_many_assets_are_read_together(sqlite_ledger: Ledger, assets: list[Asset]) -> None:
    ledger = sqlite_ledger
    alone = {asset.uri: status(ledger, asset) for asset in assets}
    with statements(ledger) as sent:
        together = {each.uri: each for each in ledger.reader.freshness.statuses(None, NOW)}
    assert together == alone
    assert {each.state for each in alone.values()} >= {"source", "fresh", "stale", "missing"}
    assert not scans(ledger, sent, TABLES)


@pytest.mark.parametrize("has_updates", [True, False], ids=["fresh", "missing"])
def test_8_9_assets_without_keys_take_no_statement_more(sqlite_ledger: Ledger, has_updates: bool) -> None:
    ledger = sqlite_ledger
    sent: list[int] = []
    for number in range(40):
        made = Asset(f"s3://lake/made/{number}")
        deploy_maker(ledger, Eager(), [made], [A], f"make/{number}")
        if has_updates:
            record(ledger, made, inputs={A.uri: 1})
        if number in (19, 39):
            with statements(ledger) as given:
                assert len(ledger.reader.freshness.statuses(None, NOW)) == number + 2
            sent.append(len(given))
    assert sent[0] == sent[1]


def test_8_12_a_data_path_may_end_at_something_made_that_was_not_read(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(on=()), [B], [A], "make-b/x")
    deploy_maker(ledger, Eager(on=()), [C], [B], "make-c/x")
    record(ledger, A)
    record(ledger, C, minute=1, inputs={B.uri: 1})
    record(ledger, B, minute=2, inputs={A.uri: 1})
    path = [(step.uri, step.moment, step.source) for step in ledger.reader.freshness.data_path(C.uri)]
    assert path == [(C.uri, NOW + 2 * MINUTE, False), (B.uri, NOW + 2 * MINUTE, False)]
    assert ledger.reader.freshness.data_path("s3://lake/nothing") == []


def test_8_12_the_data_path_of_current_data_is_the_asset_alone(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(on=()), [B], [A], "make-b/x")
    record(ledger, A)
    record(ledger, B, minute=1, inputs={A.uri: 1})
    (step,) = ledger.reader.freshness.data_path(B.uri)
    assert (step.uri, step.moment, as_json(step)["data_time"]) == (B.uri, None, "current")
