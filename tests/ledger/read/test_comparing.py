"""What a deploy would change is what it then changes, and a replay does what was done. Contract 11.4 to 11.7."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from assetflow.core.compare import Change, Comparison, Fold, Replayed, replay_in_words
from assetflow.core.partitions import StartOfDayMapper
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AtLeast
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import AssetAndTimeSchedule, PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Deadline, Intake
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.wire.deployments import Deployed
from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, deploy, update
from tests.ledger.conftest import NewLedger

NOW = NOON + timedelta(hours=1)
OTHER = Asset("s3://lake/other")


def wanted(name: str, schedule: object, **more: Any) -> Deployed:
    return Deployed.of(name, FlowDeclaration(ConsumerOptions(to_schedule(schedule)), **more), NOW)


def compared(
    ledger: Ledger, *flows: Deployed, renamed: Mapping[str, str] | None = None, keep: Collection[str] = ()
) -> Comparison:
    comparing = ledger.reader.comparing
    return comparing.deploy(comparing.deployed(), flows, NOW, renamed=renamed or {}, keep=keep)


def test_rule_11_4_the_queued_events_that_a_changed_schedule_loses_are_those_that_a_deploy_supersedes(
    ledger: Ledger,
) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    for minute in range(3):
        update(ledger, ORDERS, minute)
    flow = wanted("report/shop", CUSTOMERS & OTHER)
    (change,) = compared(ledger, flow).consumers
    changed = ("changed", "orders AND customers", "customers AND s3://lake/other")
    assert (change.kind, change.before, change.after) == changed
    assert change.superseded == {ORDERS.uri: 3}
    assert ledger.reader.queues.size(consumer.id)[1] == 3
    ledger.writer.consumers.change(consumer.id, flow.text, NOW)
    receipts = [each for event in ledger.reader.events.find() for each in ledger.reader.receipts.of_event(event.id)]
    assert [each.receipt.status for each in receipts] == ["superseded"] * 3


def test_rule_11_4_runs_that_the_deploy_starts_at_once_are_those_that_it_then_starts(ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    flow = wanted("report/shop", ORDERS)
    (run,) = compared(ledger, flow).runs
    assert (run.consumer, run.target_key, run.words) == ("report/shop", None, "with 1 update")
    (made,) = ledger.writer.consumers.change(consumer.id, flow.text, NOW)[1]
    assert len(made.events) == 1


def test_rule_11_4_what_is_added_removed_renamed_and_refused(ledger: Ledger) -> None:
    deploy(ledger, "old/shop", ORDERS)
    deploy(ledger, "gone/shop", CUSTOMERS)
    deploy(ledger, "same/shop", ORDERS)
    found = compared(
        ledger,
        wanted("same/shop", ORDERS),
        wanted("new/shop", ORDERS),
        wanted("added/shop", "0 6 * * *"),
        wanted("taken/shop", Asset("s3://lake/others", name="orders")),
        renamed={"new/shop": "old/shop"},
    )
    kinds = {"added/shop": "added", "gone/shop": "removed", "new/shop": "renamed", "taken/shop": "refused"}
    assert {each.consumer: each.kind for each in found.consumers} == kinds
    assert found.unchanged == 1
    automations = {"added/shop": "made", "gone/shop": "removed", "new/shop": "made"}
    assert {each.consumer: each.automation for each in found.consumers if each.automation} == automations
    assert "belongs to" in next(each.refused for each in found.consumers if each.refused)


def test_rule_11_4_assets_lose_their_last_producer_and_consumer(ledger: Ledger) -> None:
    deploy(ledger, "producer/shop", None, produces=(ORDERS, CUSTOMERS))
    deploy(ledger, "report/shop", ORDERS | CUSTOMERS)
    found = compared(ledger, wanted("producer/shop", None, produces=(CUSTOMERS,)), wanted("report/shop", ORDERS))
    assert {(each.asset, each.lost) for each in found.assets} == {(ORDERS.uri, "producer"), (CUSTOMERS.uri, "consumer")}


MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
A, B, C = Asset("a"), Asset("b", name="bee"), Asset("c")
DAYS = PartitionedAssetTimetable(assets=A & B, default_partition_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"))
DAILY = AssetAndTimeSchedule(timetable="0 13 * * *", assets=A, until="0 18 * * *")
# Each schedule with its options.
SCHEDULES: dict[str, tuple[object, dict[str, Any]]] = {
    "and": (A & B, {}),
    "or": (A | (B & C), {}),
    "quorum": (AtLeast(2, A, B, C), {}),
    "times": (A.times(3), {}),
    "ref": (AssetRef(name="bee") & A, {}),
    "alias": (AssetAlias("all") & C, {}),
    "coalesce": (A, {"coalesce": True}),
    "days": (DAYS, {}),
    "within": ((A & B).within(HOUR), {}),
    "since": ((A & B).since("0 * * * *"), {}),
    "debounce": (A, {"intake": Intake(debounce=10 * MINUTE, max_wait=HOUR)}),
    "batches": (A | B, {"intake": Intake(min_events=3, max_wait=HOUR, max_events=4)}),
    "cooldown": (A, {"intake": Intake(cooldown=HOUR)}),
    "deadline": (A & B, {"deadline": Deadline(after=HOUR, then="run")}),
    "skip": (A & B, {"deadline": Deadline(after=HOUR, then="skip")}),
    "opening": (DAILY, {"deadline": Deadline(after=HOUR)}),
    "days within": (PartitionedAssetTimetable(assets=(A & B).within(HOUR)), {}),
}
# What happens, each some minutes after the one before: updates of one recording, or the end of the oldest run.
STEPS = st.lists(
    st.tuples(
        st.integers(1, 200),
        st.sampled_from(["a", "b", "c", "ab", "end"]),
        st.sampled_from([None, "2026-01-01T05", "2026-01-02T06"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


def _happens(ledger: Ledger, now: datetime, what: str, key: str | None, aliased: bool, number: int) -> None:
    if what == "end":
        running = ledger.reader.decisions.running() or [each for each, _ in ledger.reader.decisions.waiting()]
        for each in running[:1]:
            ledger.writer.decisions.launched(each.id, each.id, now)
            ledger.writer.decisions.ended("Completed", now, decision_id=each.id, outcome="completed")
    else:
        events = tuple(
            AssetEvent(
                uuid5(UUID(int=number), name),
                {"a": A, "b": B, "c": C}[name],
                now,
                Origin("api"),
                partition_key=key,
                aliases=("all",) if aliased else (),
            )
            for name in what
        )
        ledger.writer.events.record([Recording(uuid5(UUID(int=number), "recording"), events)], now)


# A fifth of the schedules each.
@pytest.mark.parametrize("part", range(5))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=9,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
@given(steps=STEPS, begins=st.integers(0, 3000))
# Runs of a coalescing consumer end while it is replayed.
@example(steps=[(5, what, None, False) for what in ("a", "a", "end", "a", "end", "a")], begins=0)
def test_rule_11_6_an_unchanged_consumer_differs_in_nothing_from_its_recorded_decisions(
    new_sqlite: NewLedger, part: int, steps: list[tuple[int, str, str | None, bool]], begins: int
) -> None:
    names = list(SCHEDULES)[part::5]
    with new_sqlite() as ledger:
        for name in names:
            schedule, options = SCHEDULES[name]
            deploy(ledger, f"{name}/shop", schedule, **options)
        now = NOON
        for number, (minutes, what, key, aliased) in enumerate(steps):
            now += minutes * MINUTE
            ledger.writer.clock.run(now - timedelta(microseconds=1), now)
            _happens(ledger, now, what, key, aliased, number)
        now += 5 * HOUR
        while (passed := ledger.writer.clock.run(now, now)).next is not None and passed.next <= now:
            pass
        since = min(NOON + begins * MINUTE + timedelta(seconds=30), now)
        recorded = _recorded(ledger, names, since)
        assert {name: _folded(ledger, name, since, now) for name in recorded} == recorded


def _recorded(ledger: Ledger, names: list[str], since: datetime) -> dict[str, list[tuple[datetime, UUID]]]:
    found: dict[str, list[tuple[datetime, UUID]]] = {f"{name}/shop": [] for name in names}
    for each in reversed(ledger.reader.decisions.find(limit=10_000)):
        if each.made > since:
            found[each.consumer_name].append((each.made, each.id))
    return {name: sorted(made) for name, made in found.items()}


def _folded(ledger: Ledger, name: str, since: datetime, until: datetime) -> list[tuple[datetime, UUID]]:
    records = {each.consumer.id: each for each in ledger.reader.consumers.all()}
    consumer = next(each.consumer for each in records.values() if each.consumer.name == name)
    history = ledger.reader.comparing.history(Change(name, consumer, consumer.options), records, since, until)
    return sorted((each.made, each.id) for each in Fold(consumer, history).run().decisions if each.made > since)


def replayed(ledger: Ledger, consumer: Consumer | None, schedule: object, until: int, **options: Any) -> Replayed:
    after = None if schedule is None else ConsumerOptions(to_schedule(schedule), **options)
    name = "report/shop"
    (found,) = ledger.reader.comparing.replayed([Change(name, consumer, after)], NOON, NOON + until * MINUTE)
    return found


def test_rule_11_6_a_run_that_would_be_gone_is_told_with_its_reason(ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 10)
    update(ledger, CUSTOMERS, 390)
    update(ledger, ORDERS, 400)
    update(ledger, CUSTOMERS, 410)
    found = replayed(ledger, consumer, (ORDERS & CUSTOMERS).within(6 * HOUR), 1000)
    assert (found.before, found.after) == (2, 1)
    assert replay_in_words(found) == (
        "1 run instead of 2; at 2026-01-01 18:30:00 UTC it would not have run: "
        "customers came 6 h 20 min after orders: outside of within 6 h."
    )


@pytest.mark.parametrize(
    ("schedule", "options", "words"),
    [
        (ORDERS, {}, "2 runs instead of 1; at 2026-01-01 12:01:00 UTC it would have run: "
         "now it still needs customers."),
        (ORDERS & HOURLY, {}, "0 runs instead of 1; at 2026-01-01 12:02:00 UTC it would not have run: "
         "it still needs hourly."),
        (ORDERS & CUSTOMERS, {"coalesce": True}, "1 run, as before; no run differs."),
        (None, {}, "0 runs instead of 1; at 2026-01-01 12:02:00 UTC it would not have run: it would be gone."),
        ("0 13 * * *", {}, "1 run, as before; at 2026-01-01 12:02:00 UTC it would not have run: "
         "it would not run on assets any more."),
    ],
)  # fmt: skip
def test_rule_11_6_runs_and_the_first_difference(
    ledger: Ledger, schedule: object, options: Mapping[str, Any], words: str
) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    update(ledger, CUSTOMERS, 2)
    update(ledger, ORDERS, 3)
    assert replay_in_words(replayed(ledger, consumer, schedule, 70, **options)) == words


def test_rule_11_7_what_a_pause_dropped_and_an_operator_removed_stays_out(ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    ledger.writer.queues.remove(consumer.id, uri=ORDERS.uri, now=NOON + 2 * MINUTE)
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOON + 3 * MINUTE)
    update(ledger, ORDERS, 4)
    ledger.writer.consumers.switch(consumer.id, paused=False, now=NOON + 5 * MINUTE)
    update(ledger, CUSTOMERS, 6)
    paused = ledger.reader.consumers.all()[0].consumer
    found = replayed(ledger, paused, ORDERS & CUSTOMERS & HOURLY, 100)
    assert (found.before, found.after) == (0, 0)
