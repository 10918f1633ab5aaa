"""Whatever an operation changes, another process that remembers the ledger knows it at its next transaction."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, select

from assetflow import Asset, AssetWatcher, Eager
from assetflow.core.freshness.records import Backfill, BackfillItem, Target
from assetflow.core.graph.lineage import Learned
from assetflow.core.rules.ended_runs import RunEnd, RunGoingOn
from assetflow.core.rules.state import State
from assetflow.core.rules.timers import Timer
from assetflow.core.time.timetables import DeltaTriggerTimetable
from assetflow.core.watchers.intake import CursorStep, Note, WatcherIntake
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.lease import Holder
from assetflow.ledger.read.backfills import Planned
from assetflow.ledger.records import TimerRecord
from assetflow.ledger.sql.tables import ASSET, EVENT, LEDGER
from assetflow.ledger.write.backfills import BackfillWriter
from assetflow.ledger.write.decisions import DecisionWriter
from assetflow.ledger.write.writer import Writer
from assetflow.watchers import FileTrigger
from tests.ledger.making import NOW, A, B, C, declared, deploy, deploy_maker, update
from tests.ledger.write.test_kept import kept

MADE = Asset("s3://lake/made", name="bee")
MAKES = declaration_to_text(FlowDeclaration(produces=(Asset("s3://lake/declared", name="cee"),)))
WATCHED = Asset("s3://lake/watched", watchers=[AssetWatcher("w", FileTrigger("/in/*"))])
CONSUMER_ID, DEPLOYMENT, HOLDER = 1, UUID(int=1), Holder(UUID(int=2), "here", 1)
LATER = NOW + timedelta(days=400)
RUN = UUID(int=4)
TIMER = TimerRecord(CONSUMER_ID, "flow/one", DEPLOYMENT, Timer(DeltaTriggerTimetable(timedelta(hours=1)), NOW))
BY_HAND = RunGoingOn(UUID(int=3), DEPLOYMENT, None, None, NOW, by_time=False)


def begun_backfill(writer: Writer) -> BackfillWriter:
    step = BackfillItem(0, Target(CONSUMER_ID))
    writer.backfills.begin(Backfill(0, NOW), Planned([step], [], {CONSUMER_ID: "flow/one"}), NOW)
    return writer.backfills


def eager_flow(writer: Writer) -> int:
    text = declaration_to_text(kept([A], [C]))
    return writer.consumers.deploy("f/kept", uuid4(), None, text, False, False, NOW)[0].id


# Each operation of the writer; those on consumers, assets and queues have arguments with which they change some.
OPERATIONS: dict[str, Callable[[Writer, UUID, UUID], Any]] = {
    "assets.hide": lambda writer, *_: writer.assets.hide(A.uri, by="ann", now=NOW),
    "assets.unhide": lambda writer, *_: (writer.assets.hide(A.uri, by="ann", now=NOW), writer.assets.unhide(A.uri)),
    "events.record": lambda writer, *_: writer.events.record([update(A)], NOW),
    "events.begin_adoption": lambda writer, *_: writer.events.begin_adoption([]),
    "events.end_adoption": lambda writer, *_: (writer.events.begin_adoption([]), writer.events.end_adoption(NOW)),
    "events.refuse": lambda writer, *_: writer.events.refuse({}, "a reason", None, "api", None, NOW),
    "consumers.deploy": lambda writer, *_: writer.consumers.deploy(
        "f/new", uuid4(), None, declared(A), False, False, NOW
    ),
    "consumers.change": lambda writer, *_: writer.consumers.change(CONSUMER_ID, declared(C), NOW),
    "consumers.switch": lambda writer, *_: writer.consumers.switch(CONSUMER_ID, paused=True, now=NOW),
    "consumers.remove": lambda writer, *_: writer.consumers.remove(CONSUMER_ID, NOW),
    "consumers.forget": lambda writer, *_: writer.consumers.forget(DEPLOYMENT, NOW),
    "consumers.set_automation": lambda writer, *_: writer.consumers.set_automation(CONSUMER_ID, uuid4()),
    "lineage.declare": lambda writer, *_: writer.lineage.declare(uuid4(), "f/other", MAKES, NOW),
    "lineage.learn": lambda writer, *_: writer.lineage.learn(
        Learned(uuid4(), "f/learned", produces=(Asset("s3://lake/learned", name="sea"),), reads=(A,)), NOW
    ),
    "consumers.keep_timers": lambda writer, *_: writer.consumers.keep_timers([TIMER]),
    "consumers.drop_timers": lambda writer, *_: (
        writer.consumers.keep_timers([TIMER]),
        writer.consumers.drop_timers([CONSUMER_ID]),
    ),
    "queues.remove": lambda writer, *_: writer.queues.remove(CONSUMER_ID, by="me", why="so", now=NOW),
    "decisions.launched": lambda writer, waiting, _: writer.decisions.launched(waiting, uuid4(), NOW),
    "decisions.noted": lambda writer, waiting, _: writer.decisions.noted([waiting], NOW),
    "decisions.attempt_failed": lambda writer, waiting, _: writer.decisions.attempt_failed(waiting, "no answer"),
    "decisions.undeliverable": lambda writer, waiting, _: writer.decisions.undeliverable(waiting, "gone", NOW),
    "decisions.give_up": lambda writer, waiting, _: writer.decisions.give_up(
        waiting, by="ann", why="never sent", now=NOW
    ),
    "decisions.replay": lambda writer, _, given_up: writer.decisions.replay(given_up, NOW),
    "decisions.ended": lambda writer, waiting, _: writer.decisions.ended("Completed", NOW, decision_id=waiting),
    "decisions.retried": lambda writer, waiting, _: ended_decision(writer, waiting).retried(RUN, LATER, LATER),
    "decisions.backfill": lambda writer, *_: writer.decisions.backfill(CONSUMER_ID, {}, at_once=1, now=NOW),
    "runs.goes_on": lambda writer, *_: writer.runs.goes_on(BY_HAND, NOW),
    "runs.began": lambda writer, *_: writer.runs.began(BY_HAND.run, NOW, NOW),
    "runs.retried": lambda writer, *_: writer.runs.retried(BY_HAND.run, LATER, LATER),
    "runs.ended": lambda writer, *_: writer.runs.ended(BY_HAND.run, RunEnd("Completed", "completed"), NOW),
    "backfills.begin": lambda writer, *_: writer.backfills.begin(Backfill(0, NOW), Planned([], [], {}), NOW),
    "backfills.stop": lambda writer, *_: begun_backfill(writer).stop(1, NOW),
    "backfills.resume": lambda writer, *_: begun_backfill(writer).resume(1, NOW),
    "clock.run": lambda writer, *_: writer.clock.run(LATER, LATER),
    "ended_runs.add": lambda writer, *_: writer.ended_runs.add([], NOW),
    "ended_runs.go_on": lambda writer, *_: writer.ended_runs.go_on({RUN: LATER}),
    "ended_runs.to_tell": lambda writer, *_: writer.ended_runs.to_tell(10),
    "ended_runs.posted": lambda writer, *_: writer.ended_runs.posted([1], NOW),
    "ended_runs.stored": lambda writer, *_: writer.ended_runs.stored([1], NOW),
    "failed_checks.to_tell": lambda writer, *_: writer.failed_checks.to_tell(10),
    "failed_checks.posted": lambda writer, *_: writer.failed_checks.posted([1], NOW),
    "failed_checks.stored": lambda writer, *_: writer.failed_checks.stored([1], NOW),
    "materialized.to_tell": lambda writer, *_: writer.materialized.to_tell(10),
    "materialized.posted": lambda writer, *_: writer.materialized.posted([], NOW),
    "materialized.stored": lambda writer, *_: writer.materialized.stored([], NOW),
    "freshness.to_tell": lambda writer, *_: writer.freshness.to_tell(10),
    "freshness.retry": lambda writer, *_: writer.freshness.retry(eager_flow(writer), None, NOW),
    "freshness.posted": lambda writer, *_: writer.freshness.posted([1], NOW),
    "freshness.stored": lambda writer, *_: writer.freshness.stored([1], NOW),
    "deadlines.to_tell": lambda writer, *_: writer.deadlines.to_tell(10),
    "deadlines.posted": lambda writer, *_: writer.deadlines.posted([1], NOW),
    "deadlines.stored": lambda writer, *_: writer.deadlines.stored([1], NOW),
    "watchers.record": lambda writer, *_: writer.watchers.record(
        WatcherIntake("amqp://mq orders", [update(A)], notes=[Note(uuid4(), "d")], cursor=CursorStep("w", {"a": 1})),
        NOW,
    ),
    "watchers.acknowledged": lambda writer, *_: writer.watchers.acknowledged([uuid4()]),
    "watchers.set_state": lambda writer, *_: writer.watchers.set_state(["w"], "failing", "no answer", NOW),
    "watchers.set_lag": lambda writer, *_: writer.watchers.set_lag({"w": 3}),
    "watchers.switch": lambda writer, *_: (
        writer.lineage.declare(uuid4(), "f/watched", declared(WATCHED), NOW),
        writer.watchers.switch("w", paused=True, now=NOW),
    ),
    "prune": lambda writer, *_: writer.prune(LATER),
    "lease.acquire": lambda writer, *_: writer.lease.acquire(HOLDER, NOW),
    "lease.renew": lambda writer, *_: (writer.lease.acquire(HOLDER, NOW), writer.lease.renew(HOLDER, NOW)),
    "lease.release": lambda writer, *_: writer.lease.release(HOLDER),
    "lease.stand_by": lambda writer, *_: writer.lease.stand_by(HOLDER),
    "end_session": lambda writer, *_: writer.end_session("a session", LATER, NOW),
    "set_cursor": lambda writer, *_: writer.set_cursor("events", "2026"),
    "set_prefect_api_url": lambda writer, *_: writer.set_prefect_api_url("http://127.0.0.1/api"),
}


def filled(ledger: Ledger) -> tuple[UUID, UUID]:
    """Fill a ledger; return a decision that waits for its run, and one that is undeliverable."""
    deploy(ledger, A & B, "flow/one", DEPLOYMENT)
    deploy(ledger, A | C, "flow/two", coalesce=True)
    # With a flow that keeps its outputs up to date, all flows are in the data graph.
    deploy_maker(ledger, Eager(), [MADE], [A], "flow/eager")
    ledger.writer.events.record([update(A, aliases=("x",))], NOW)
    ledger.writer.events.record([update(A), update(B), update(C), update(A)], NOW)
    one, two = (ledger.reader.decisions.find(consumer=number)[0].id for number in (1, 2))
    ledger.writer.decisions.undeliverable(two, "gone", NOW)
    return one, two


def ended_decision(writer: Writer, decision: UUID) -> DecisionWriter:
    writer.decisions.launched(decision, RUN, NOW)
    writer.decisions.ended("Failed", NOW, flow_run_id=RUN, outcome="failed", state_at=NOW)
    return writer.decisions


@dataclass
class Memories:
    """What a second process remembers of a ledger, and what it would read.

    Parameters:
        ledger: as that process has it open.
    """

    ledger: Ledger

    def compare(self) -> tuple[list[Any], list[Any]]:
        """Return everything that the process knows, and the same as one that begins to read the ledger now knows it.

        Afterwards it remembers all of it.
        """
        with self.ledger.transaction(NOW) as unit:
            begins = State(LedgerSource(unit.connection))
            begins.begin(unit.memory.last_event + 1, NOW)
            return known(unit.state, unit.connection), known(begins, unit.connection)


def known(state: State, connection: Connection) -> list[Any]:
    """Return all that a state keeps from one transaction to the next."""
    uris = sorted(connection.scalars(select(EVENT.c.uri).union(select(ASSET.c.uri))))
    consumers = [CONSUMER_ID, *range(2, 1 + (connection.scalar(select(LEDGER.c.last_consumer)) or 0))]
    queues = [
        (number, key) for number in consumers for key in sorted({None, *state.queues.target_keys(number)}, key=str)
    ]
    names, graph = state.names, state.freshness.graph
    found = map(state.consumers.find, consumers)
    return [
        [(uri, sorted(names.names_of(uri)), sorted(names.aliases_of(uri)), names.description_of(uri)) for uri in uris],
        [names.owner_of(name) for name in ("bee", "cee", "sea")],
        [each and (each, each.deployed) for each in found],
        [state.consumers.wanting(names.tokens_of(uri)) for uri in uris],
        [state.queues.pending(*queue) for queue in queues],
        [[event.sequence for event in state.queues.queued(*queue)] for queue in queues],
        sorted((node.id, node.consumer, node.inputs, sorted(node.outputs)) for node in graph.all()),
    ]


@pytest.fixture
def memories(ledger: Ledger) -> Iterator[Memories]:
    with Ledger.open(ledger._engine.url.render_as_string(hide_password=False)) as opened:
        yield Memories(opened)


def operations(of: object, prefix: str = "") -> Iterator[str]:
    """Yield the name of each public method of a writer, and of its topics: `prune`, `events.record`."""
    for name, _ in inspect.getmembers(type(of), inspect.isfunction):
        if not name.startswith("_"):
            yield prefix + name
    for name, topic in vars(of).items():
        if not name.startswith("_"):
            yield from operations(topic, f"{name}.")


def test_every_operation_is_in_the_list(ledger: Ledger) -> None:
    assert OPERATIONS.keys() == set(operations(ledger.writer))


@pytest.mark.parametrize("name", OPERATIONS)
def test_another_process_knows_what_an_operation_has_changed(ledger: Ledger, memories: Memories, name: str) -> None:
    decisions = filled(ledger)
    memories.compare()
    OPERATIONS[name](ledger.writer, *decisions)
    remembered, read = memories.compare()
    assert remembered == read
