"""Why something ran, or did not: the facts beside each leaf, and the words."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest

from assetflow.core.explain import (
    ConsumerFacts,
    DecisionFacts,
    KnownNames,
    QueuedEvents,
    RunFacts,
    explain_consumer,
    explain_decision,
    explain_partition,
)
from assetflow.core.explain.facts import DecisionBefore
from assetflow.core.partitions import DayWindow, RollupMapper, StartOfDayMapper
from assetflow.core.shapes import as_json
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.values.schedule_values import AssetOrTimeSchedule, PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.timing import Intake

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
A, B, C = (Asset(f"s3://lake/{name}", name=name) for name in "abc")
DAILY = to_schedule(
    PartitionedAssetTimetable(
        assets=A & B, partition_mapper_config={A: RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())}
    )
)


def event(asset: Asset, number: int, key: str | None = None, **fields: Any) -> AssetEvent:
    """An event with its place in the ledger, recorded `number` minutes after noon."""
    moment, origin = NOW + timedelta(minutes=number), fields.pop("origin", Origin("api"))
    made = AssetEvent(uuid5(UUID(int=0), str(number)), asset, moment, origin, partition_key=key, **fields)
    return made.in_ledger(number, moment)


def consumer(schedule: object, **fields: Any) -> Consumer:
    intake = Intake(
        **{name: fields.pop(name) for name in ("debounce", "max_wait", "min_events", "cooldown") if name in fields}
    )
    given = fields.pop("while_paused", "drop"), fields.pop("coalesce", False)
    options = ConsumerOptions(to_schedule(schedule), *given, intake=intake)
    return Consumer(1, "flow/one", UUID(int=1), options, **fields)


def facts(schedule: object, *events: AssetEvent, names: KnownNames | None = None, **fields: Any) -> ConsumerFacts:
    of_consumer = {name: fields.pop(name) for name in ("paused", "held", "coalesce", "while_paused") if name in fields}
    made, queues = consumer(schedule, **of_consumer), [QueuedEvents(events)] if events else []
    return ConsumerFacts(made, names or KnownNames(), queues, len(queues), len(events), since=NOW, **fields)


def made(*events: AssetEvent, key: str | None = None) -> Decision:
    return Decision(UUID(int=7), 1, UUID(int=1), key, events, NOW + timedelta(hours=1))


@pytest.mark.parametrize("count", [0, 20, 24])
def test_a_rolled_up_leaf_says_which_keys_are_missing_and_which_event_completed_it(count: int) -> None:
    hours = [event(A, number, f"2026-01-01T{number:02d}:00:00") for number in range(count)]
    again, day = [event(A, 25, each.partition_key) for each in hours[:1]], event(B, 30, "2026-01-01")
    queued = [*hours, *again, day] if count else []
    told = explain_partition(DAILY, QueuedEvents(queued, target_key="2026-01-01"), KnownNames())
    leaf = told.condition[1]
    assert told.missing == tuple(f"2026-01-01T{hour:02d}:00:00" for hour in range(count, 24))
    assert leaf.received == (() if told.holds else tuple(each.partition_key for each in hours))
    assert (told.holds, leaf.satisfied_by) == ((True, hours[-1]) if count == 24 else (False, None))
    assert ("nothing queued" in told.words) is (count == 0)
    assert f"{count} of 24 keys received" in leaf.words or count != 20


@pytest.mark.parametrize(
    ("given_facts", "state"),
    [
        (facts(A), "waiting"),
        (facts(A, event(A, 1)), "ready"),
        (facts(A, event(A, 1), paused=True), "paused"),
        (facts(A, held=True), "held"),
        (facts(A, event(A, 1), coalesce=True, running={None}), "running"),
        (facts(A, event(A, 1), coalesce=True), "ready"),
        (facts(A, removed=NOW), "removed"),
        (facts(AssetOrTimeSchedule(timetable="0 0 * * *", assets=[A])), "waiting"),
        (facts(to_schedule("0 0 * * *")), "time only"),
        (facts(Schedule()), "no schedule"),
        (facts(DAILY), "waiting"),
        (facts(AssetAll()), "never"),
    ],
)
def test_the_state_of_a_consumer(given_facts: ConsumerFacts, state: str) -> None:
    told = explain_consumer(given_facts, NOW)
    assert told.state == state
    assert told.words.endswith(".")
    json.dumps(as_json(told))


LAST = DecisionFacts(made(event(A, 1)), "flow/one", RunFacts(undeliverable=True, error="404"))


@pytest.mark.parametrize(
    ("given_facts", "words"),
    [
        (facts(A, paused=True), "dropped"),
        (facts(A, paused=True, while_paused="keep"), "goes on filling"),
        (facts(A, loops=[("flow/one", A.uri, "flow/one")]), f"flow/one → {A.uri} → flow/one"),
        (facts(A, last=LAST), "queue replay 00000000-0000-0000-0000-000000000007"),
        (facts(Schedule()), "flow/one runs only when a person, a backfill or Prefect starts it."),
        (facts(A), "flow/one has been waiting"),
        (facts(A & B), "it still needs a and b"),
        (facts(A & (B | C)), "it still needs some of a, b, c"),
        (facts(AssetAll(*(Asset(f"s3://many/{number}") for number in range(7)))), "needs s3://many/0, s3://many/1"),
    ],
)
def test_what_is_said_of_a_consumer(given_facts: ConsumerFacts, words: str) -> None:
    told = explain_consumer(given_facts, NOW)
    assert words in " ".join([told.words, *told.notes])


HOUR = timedelta(hours=1)
AT_ONE = NOW + HOUR
BEFORE = DecisionBefore(NOW, AT_ONE)


@pytest.mark.parametrize(
    ("of", "updates", "change", "before", "words"),
    [
        ({"deployed": AT_ONE}, (1,), {}, None, "The decision came with the deploy at 2026-01-01 13:00:00 UTC."),
        (
            {"deployed": AT_ONE, "switched_late": True},
            (1,),
            {},
            None,
            "when the evaluator found, at 2026-01-01 13:00:00 UTC, that it was active again.",
        ),
        ({}, (1,), {}, None, "when it became active: it was paused or held until then."),
        ({"deployed": AT_ONE + HOUR}, (1,), {}, None, "What the decision waited for after that is not kept."),
        ({"coalesce": True}, (1,), {}, BEFORE, "when the run of the decision of 2026-01-01 12:00:00 UTC had ended"),
        ({"coalesce": True}, (1,), {}, BEFORE._replace(ended=NOW), "it was paused or held until then."),
        ({"cooldown": HOUR}, (1,), {}, BEFORE, "at the end of its cooldown after the decision of 2026-01-01 12:00:00"),
        ({"debounce": timedelta(minutes=50)}, (1, 10), {}, None, "no more updates had come for a while (debounce)."),
        (
            {"debounce": timedelta(minutes=20), "max_wait": timedelta(minutes=59)},
            (1, 59),
            {},
            None,
            "after the longest wait for more updates (max_wait).",
        ),
        ({"min_events": 2}, (1, 60), {}, None, "with the last of 2 updates (min_events)."),
        ({}, (1,), {"opening": AT_ONE}, None, "The decision came when its schedule opened."),
    ],
)
def test_a_late_decision_says_what_it_came_with(
    of: dict[str, Any], updates: Sequence[int], change: dict[str, Any], before: DecisionBefore | None, words: str
) -> None:
    decision = replace(made(*(event(A, number) for number in updates)), **change)
    told = explain_decision(DecisionFacts(decision, "flow/one", before=before), consumer(A, **of), KnownNames())
    assert words in told.words
    assert told.words.count("The decision came") + told.words.count("is not kept") == 1


@pytest.mark.rule("4.10")
def test_a_decision_by_a_deadline_says_so_and_one_whose_events_were_not_all_read_guesses_no_pause() -> None:
    late = replace(made(event(A, 1)), by_deadline=True)
    told = explain_decision(DecisionFacts(late, "flow/one"), consumer(A & B), KnownNames())
    assert told.words == "flow/one runs because its deadline passed at 2026-01-01 13:00:00 UTC, with 1 event."
    told = explain_decision(DecisionFacts(made(event(A, 1)), "flow/one", total=2), consumer(A), KnownNames())
    assert told.words.endswith("is not kept.")


@pytest.mark.rule("4.10")
@pytest.mark.parametrize(
    ("receipt", "words"),
    [
        (None, "The update of b at 2026-01-01 11:59:00 UTC came before flow/one was deployed (at 2026-01-01 12:00"),
        (Receipt(1, B.uri, 1, "dropped"), "does not count: dropped: flow/one was paused, and takes nothing"),
        (Receipt(1, B.uri, 1, "consumed"), None),
    ],
)
def test_an_update_that_does_not_count_says_why(receipt: Receipt | None, words: str | None) -> None:
    notes = explain_consumer(facts(A & B, event(A, 1), newest=[(event(B, -1), receipt)]), NOW).notes
    assert [words in note for note in notes if words is not None] == ([] if words is None else [True])


@pytest.mark.rule("4.10")
@pytest.mark.parametrize(
    ("run", "status", "words"),
    [
        (RunFacts(), "waiting", "not started yet"),
        (RunFacts(attempts=2, error="503"), "waiting", "2 attempts failed, the last with: 503"),
        (RunFacts(UUID(int=3), launched=NOW), "launched", "started the flow run"),
        (
            RunFacts(UUID(int=3), launched=NOW, ended=NOW, state="Failed"),
            "ended",
            "12:00:00 UTC. `assetflow retry flow/one` lets it try again",
        ),
        (
            RunFacts(UUID(int=3), launched=NOW, ended=NOW, state="Failed", message="ValueError: no."),
            "ended",
            "ended Failed at 2026-01-01 12:00:00 UTC: ValueError: no. `assetflow retry flow/one` lets it try again",
        ),
        (RunFacts(undeliverable=True, error="gone", ended=NOW), "undeliverable", "has no run: gone"),
    ],
)
def test_what_became_of_a_decision(run: RunFacts, status: str, words: str) -> None:
    told = explain_decision(DecisionFacts(made(event(A, 1)), "flow/one", run), consumer(A), KnownNames())
    assert words in told.run.words
    assert as_json(told)["run"]["status"] == status  # type: ignore[index]
