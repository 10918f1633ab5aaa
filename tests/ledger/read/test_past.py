"""Why a consumer waits now, or did not run at an earlier moment. Contract 9.15."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assetflow.core.explain import ConsumerExplanation
from assetflow.core.shapes import as_json
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import consumer_explanation, past_explanation
from tests.ledger.making import NOW, A, B, deploy, event, recording, update

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def record(ledger: Ledger, minute: int, asset: Asset, key: str | None = None) -> Any:
    """Record an update so many minutes after the deployment; return its event and the decisions."""
    moment = NOW + minute * MINUTE
    made = event(asset, occurred=moment, partition_key=key)
    ledger.writer.events.record([recording(made)], moment)
    return made


def then(ledger: Ledger, minutes: float, key: str | None = None) -> ConsumerExplanation:
    (found,) = ledger.reader.consumers.all()
    return past_explanation(ledger.reader, found, NOW + minutes * MINUTE, key)


def states(explanation: ConsumerExplanation) -> list[str]:
    return [row.state for row in explanation.condition]


def test_the_queue_is_that_of_the_moment(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    first = record(ledger, 1, A)
    record(ledger, 5, B)
    record(ledger, 9, A)
    assert states(then(ledger, 0.5)) == ["waiting", "waiting", "waiting"]
    between = then(ledger, 3)
    assert states(between) == ["waiting", "satisfied", "waiting"]
    assert between.condition[1].satisfied_by == first.in_ledger(1, NOW + MINUTE)
    assert between.words.startswith("At 2026-01-01 12:03:00 UTC: flow/one has been waiting since 2026-01-01 12:00")
    assert between.next_decision is not None
    assert between.next_decision.made == NOW + 5 * MINUTE
    assert "Its next decision came at 2026-01-01 12:05:00 UTC." in between.next_words
    after = then(ledger, 6)
    assert states(after) == ["waiting", "waiting", "waiting"]
    assert after.last is not None
    assert after.next_words == "It has made no decision since then."
    assert states(then(ledger, 10)) == ["waiting", "satisfied", "waiting"]


ONE = "2026-01-01T13:00:00Z"


def explained(ledger: Ledger, now: Any = NOW) -> Any:
    (record,) = ledger.reader.consumers.all()
    return consumer_explanation(ledger.reader, record, now)


@pytest.mark.rule("9.15")
@pytest.mark.parametrize(
    ("schedule", "options", "words", "waits", "until"),
    [
        (A, {"intake": Intake(debounce=HOUR)}, "It waits until 2026-01-01 13:00:00 UTC (debounce", {"quiet"}, ONE),
        (A, {"intake": Intake(min_events=3)}, "It waits for 2 more updates (min_events).", {"more"}, None),
        (
            A,
            {"intake": Intake(debounce=HOUR, max_wait=2 * HOUR)},
            "at the latest until 2026-01-01 14:00:00 UTC (max_wait)",
            {"quiet", "at_latest"},
            ONE,
        ),
        (
            Schedule(A, opening=Opening(CronTriggerTimetable("0 18 * * *"))),
            {},
            "It waits until 2026-01-01 18:00:00 UTC (its schedule opens then).",
            {"opening"},
            "2026-01-01T18:00:00Z",
        ),
    ],
)
def test_the_words_say_until_when_it_waits_and_waited(
    ledger: Ledger, schedule: Any, options: Any, words: str, waits: set[str], until: str | None
) -> None:
    deploy(ledger, schedule, **options)
    ledger.writer.events.record([update(A)], NOW)
    found = explained(ledger)
    assert found.state == "waiting"
    assert found.words.startswith("The condition of flow/one holds. It waits ")
    assert words in found.words
    said = as_json(found)
    assert set(said["waits"]) == set(said["because"]) == waits
    assert said["until"] == until
    later = datetime(2026, 1, 3, tzinfo=UTC)
    ledger.writer.clock.run(later, later)
    assert words in then(ledger, 30).words


@pytest.mark.rule("9.15")
def test_what_expires_and_the_next_deadline_are_told(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, (A & B).within(2 * HOUR), deadline=Deadline(HOUR))
    sqlite_ledger.writer.events.record([update(A)], NOW)
    found = explained(sqlite_ledger)
    assert "still needs" in found.words
    (expiry,) = as_json(found)["expires"]
    assert expiry["at"] == "2026-01-01T14:00:00Z"
    assert any(expiry["event_id"] in note and "2026-01-01 14:00:00 UTC" in note for note in found.notes)
    assert "Its next deadline is at 2026-01-01 13:00:00 UTC." in found.notes
