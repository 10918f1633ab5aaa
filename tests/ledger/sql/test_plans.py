"""Frequent statements use an index, whatever the size of the ledger."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event as sqlalchemy_event

from assetflow.core.partitions import IdentityMapper, StartOfDayMapper
from assetflow.core.rules.ended_runs import RunEnd, RunGoingOn
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import Recording
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import Keeping
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.core.values.words import IdStart
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from assetflow.ledger.records import EventFilter
from tests.ledger.making import NOW, A, B, C, declared, deploy, event, update
from tests.ledger.write.test_kept import Place, kept

LARGE = ("event", "receipt", "consumer_token", "pending", "decision", "event_alias")


@contextmanager
def statements(ledger: Ledger) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that are sent to the database within the block."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        sent.append((statement, parameters[0] if many else parameters))

    sqlalchemy_event.listen(ledger._engine, "before_cursor_execute", note)
    yield sent
    sqlalchemy_event.remove(ledger._engine, "before_cursor_execute", note)


def scans(ledger: Ledger, sent: list[tuple[str, Any]], tables: Sequence[str] = LARGE) -> list[str]:
    """Return the statements that scan a large table."""
    found: list[str] = []
    with ledger.writes() as connection:
        for statement, parameters in sent:
            if statement.lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE")):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                steps = [row[3] for row in plan]
                found += [f"{step}: {statement}" for step in steps if is_scan(step, tables)]
    return found


def is_scan(step: str, tables: Sequence[str]) -> bool:
    # These indexes hold only the few decisions that were given up, or whose runs have no note yet.
    if step.startswith(
        ("SCAN decision USING INDEX decision_undeliverable", "SCAN decision USING INDEX decision_without")
    ):
        return False
    return any(step == f"SCAN {table}" or step.startswith(f"SCAN {table} ") for table in tables)


@pytest.fixture
def filled(sqlite_ledger: Ledger) -> Ledger:
    deploy(sqlite_ledger, A & B, "f/plain")
    deploy(sqlite_ledger, A & AssetAlias("x"), "f/alias", coalesce=True)
    partitioned = PartitionedAssetTimetable(assets=A & C, default_partition_mapper=IdentityMapper())
    deploy(sqlite_ledger, partitioned, "f/keys")
    for asset in (A, A, C, B, A):
        sqlite_ledger.writer.events.record([update(asset), update(asset, partition_key="k", aliases=("x",))], NOW)
    return sqlite_ledger


@pytest.fixture(params=[True, False], ids=["remembers", "opened again"])
def goes_on(request: pytest.FixtureRequest) -> Callable[[Ledger], Ledger]:
    """Go on with a ledger as it is, or as a process that remembers nothing."""

    def go_on(ledger: Ledger) -> Ledger:
        if request.param:
            return ledger
        ledger.close()
        opened = Ledger.open(ledger.place)
        request.addfinalizer(opened.close)
        return opened

    return go_on


@pytest.mark.rule("3.1")
def test_recording_scans_nothing(filled: Ledger, goes_on: Callable[[Ledger], Ledger]) -> None:
    ledger = goes_on(filled)
    batch = [update(A), update(B, aliases=("x",)), update(C, partition_key="k"), update(Asset("s3://lake/new"))]
    with statements(ledger) as sent:
        written = ledger.writer.events.record(batch, NOW)
    assert sum(len(decisions) for _, decisions in written) >= 2
    assert len(sent) > (10 if ledger is filled else 20)
    assert scans(ledger, sent) == []


def test_work_on_decisions_and_consumers_scans_nothing(filled: Ledger) -> None:
    [(waiting, _), *_] = filled.reader.decisions.waiting()
    consumer = filled.reader.consumers.all()[0].consumer.id
    run = uuid4()
    with statements(filled) as sent:
        filled.writer.decisions.launched(waiting.id, run, NOW)
        filled.writer.decisions.ended("Completed", NOW, flow_run_id=run)
        filled.writer.consumers.switch(consumer, paused=True, now=NOW)
        filled.writer.consumers.switch(consumer, paused=False, now=NOW)
        filled.writer.consumers.change(consumer, declared(A & C), NOW)
        filled.writer.consumers.remove(consumer, NOW)
    assert scans(filled, sent) == []


def test_reading_scans_nothing(filled: Ledger) -> None:
    reader = filled.reader
    stored = reader.events.find()
    decision = reader.decisions.find()[0]
    with statements(filled) as sent:
        reader.events.find(EventFilter(uri=A.uri), newest_first=True, limit=1)
        reader.events.find(EventFilter(alias="x"), newest_first=True, limit=1)
        reader.events.find(EventFilter(from_sequence=3), limit=1)
        reader.events.find(EventFilter(uri=A.uri, consumer=1), newest_first=True, limit=1)
        reader.events.beginning(IdStart("12345678"), 5)
        reader.decisions.beginning(IdStart("12345678"), 5)
        reader.events.find(EventFilter(flow_run_id=uuid4()))
        reader.events.count(EventFilter(uri=A.uri))
        reader.events.get(stored[0].id)
        reader.events.known([stored[0].id])
        reader.events.newest([A.uri])
        reader.receipts.of_event(stored[0].id)
        reader.queues.events(decision.consumer, None)
        reader.queues.pending(decision.consumer)
        reader.decisions.waiting()
        reader.decisions.waiting(limit=1, besides=[decision.consumer])
        reader.decisions.running()
        reader.decisions.find(consumer=decision.consumer)
        reader.decisions.find(status="waiting")
        reader.decisions.find(status="undeliverable")
        reader.decisions.get(decision.id)
        reader.decisions.of_run(uuid4())
        reader.decisions.events_of([decision])
        reader.decisions.consumed_assets([decision.number])
        reader.decisions.sample_of(decision, most=1)
        reader.decisions.without_note()
    assert scans(filled, sent) == []


def test_letting_time_pass_scans_nothing(sqlite_ledger: Ledger, goes_on: Callable[[Ledger], Ledger]) -> None:
    ledger = sqlite_ledger
    hour = timedelta(hours=1)
    cooled = Intake(debounce=hour, cooldown=hour)
    deploy(ledger, (A & B).within(hour), "f/window", intake=cooled, deadline=Deadline(3 * hour))
    deploy(ledger, Schedule(C, opening=Opening(CronTriggerTimetable("0 * * * *"))), "f/opening")
    deploy(ledger, Schedule(A, Partitioning()), "f/keys", intake=Intake(debounce=hour))
    ledger.writer.events.record([update(A), update(B), update(C), update(A, partition_key="k")], NOW)
    ledger = goes_on(ledger)
    with statements(ledger) as sent:
        made = ledger.writer.clock.run(NOW + 5 * hour, NOW + 5 * hour).decisions
        ledger.writer.events.record([update(A), update(C)], NOW + 6 * hour)
        ledger.writer.deadlines.to_tell(10)
    assert len(made) == 3
    clocks = ("queue_clock", "consumer_clock", "missed_deadline")
    found = scans(ledger, sent, (*LARGE, *clocks))
    # This index holds only the missed deadlines of which Prefect does not know yet.
    assert [step for step in found if "missed_deadline_to_tell" not in step] == []


COMPARED = ("item_version", "item", "reading", "target_key", "target", "kept_run", "policy", "policy_touch")


def test_passes_over_eager_and_lazy_flows_and_policies_scan_nothing(
    sqlite_ledger: Ledger, goes_on: Callable[[Ledger], Ledger]
) -> None:
    ledger, hour = sqlite_ledger, timedelta(hours=1)
    fact, day, week = (Asset(f"s3://lake/{name}") for name in ("fact", "day", "week"))
    board = Asset("s3://lake/board", freshness=FreshnessPolicy(hour, warn_after=hour / 2))
    place = Place(ledger, NOW)
    place.deploy("fact", kept([A, B], [fact], code="1", retries=1))
    place.deploy("day", kept([C, A], [day], mapper=StartOfDayMapper()))
    lazy = ConsumerOptions(Schedule(keeping=Keeping("lazy", retries=1)))
    place.deploy("board", FlowDeclaration(lazy, (board,), (fact,)))
    place.deploy("week", kept([fact, day], [week], retries=1))
    place.ledger = ledger = goes_on(ledger)
    keys = [f"2026-01-0{number}T01:00:00" for number in range(1, 9)]
    with statements(ledger) as sent:
        made = [decision for asset in (A, B) for decision in place.update(asset)]
        by_key = [decision for key in keys for decision in place.update(C, key)]
        run = uuid4()
        ledger.writer.decisions.launched(made[0].id, run, place.later())
        ledger.writer.runs.began(run, place.later(), place.now)
        place.make("fact", made[0], fact, run=run, code="1")
        asked = place.end(made[0])
        for decision in by_key[:3]:
            place.run("day", decision, day)
        place.end(by_key[3], "failed")
        ledger.writer.runs.goes_on(by_hand := _by_hand(place, "week"), place.later())
        ledger.writer.runs.ended(by_hand.run, RunEnd("Failed", "failed", began=place.later()), place.later())
        place.deploy("fact", kept([A, B], [fact], code="2", retries=1))
        consumer = place.consumers["day"].id
        for paused in (True, False):
            ledger.writer.consumers.switch(consumer, paused=paused, now=place.later())
        passed = ledger.writer.clock.run(NOW + 3 * hour, NOW + 3 * hour)
        ledger.writer.freshness.to_tell(10)
    assert by_key
    assert "board" in place.names(asked)
    assert passed.policy_changes
    assert scans(ledger, sent, (*LARGE, *COMPARED)) == []


def _by_hand(place: Place, name: str) -> RunGoingOn:
    return RunGoingOn(uuid4(), place.consumers[name].deployment_id, None, None, place.later(), by_time=False)


def test_pruning_reads_only_what_is_old(filled: Ledger) -> None:
    place = Place(filled, NOW)
    place.deploy("f/eager", kept([A], [B]))
    place.update(A)
    numbered = ("kept_run", "item_version", "ended_run", "failed_checks", "refused", "missed_deadline", "policy_change")
    with statements(filled) as sent:
        filled.writer.prune(NOW - timedelta(days=1))
    assert any("DELETE FROM item_version" in statement for statement, _ in sent)
    assert scans(filled, sent, (*LARGE, *numbered)) == []


def test_a_scan_would_be_found(filled: Ledger) -> None:
    with statements(filled) as sent, filled.writes() as connection:
        connection.exec_driver_sql("SELECT * FROM event WHERE asset_group = 'x'")
    assert len(scans(filled, sent)) == 1


def test_statements_do_not_grow_with_the_batch(filled: Ledger) -> None:
    counts: list[int] = []
    for size in (1, 10, 100):
        with statements(filled) as sent:
            filled.writer.events.record([Recording(uuid4(), (event(A), event(B))) for _ in range(size)], NOW)
        counts.append(len(sent))
    assert counts[1] == counts[2] < 30
