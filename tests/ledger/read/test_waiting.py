"""What holds a timed consumer back, read from a ledger. Contract 9.15."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from assetflow.core.shapes import as_json
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.timing import Deadline, Intake, Opening
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import consumer_explanation
from tests.ledger.making import NOW, A, B, deploy, update

pytestmark = pytest.mark.rule("9.15")
HOUR = timedelta(hours=1)
ONE = "2026-01-01T13:00:00Z"


def explained(ledger: Ledger, now: Any = NOW) -> Any:
    (record,) = ledger.reader.consumers.all()
    return consumer_explanation(ledger.reader, record, now)


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
def test_the_words_say_until_when_it_waits(
    sqlite_ledger: Ledger, schedule: Any, options: Any, words: str, waits: set[str], until: str | None
) -> None:
    deploy(sqlite_ledger, schedule, **options)
    sqlite_ledger.writer.events.record([update(A)], NOW)

    found = explained(sqlite_ledger)

    assert found.state == "waiting"
    assert found.words.startswith("The condition of flow/one holds. It waits ")
    assert words in found.words
    said = as_json(found)
    assert set(said["waits"]) == set(said["because"]) == waits
    assert said["until"] == until


def test_what_expires_and_the_next_deadline_are_told(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, (A & B).within(2 * HOUR), deadline=Deadline(HOUR))
    sqlite_ledger.writer.events.record([update(A)], NOW)

    found = explained(sqlite_ledger)

    assert "still needs" in found.words
    (expiry,) = as_json(found)["expires"]
    assert expiry["at"] == "2026-01-01T14:00:00Z"
    assert any(expiry["event_id"] in note and "2026-01-01 14:00:00 UTC" in note for note in found.notes)
    assert "Its next deadline is at 2026-01-01 13:00:00 UTC." in found.notes


def test_a_consumer_that_is_not_timed_says_nothing_of_it(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, A & B)
    sqlite_ledger.writer.events.record([update(A)], NOW)

    told = as_json(explained(sqlite_ledger))
    assert (told["waits"], told["because"], told["until"], told["expires"]) == ({}, [], None, [])
