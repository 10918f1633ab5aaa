"""What ended goes on or runs again, because somebody asks for it. Contract 4.7, 8.6, 8.7."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.rules.ended_runs import RunEnd
from assetflow.core.values.consumers import Decision
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration
from assetflow.errors import InvalidCall, UnknownConsumer
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, deploy
from tests.ledger.write.test_backfills import begin as begin_backfill
from tests.ledger.write.test_backfills import fresh_chain
from tests.ledger.write.test_backfills import state as backfill_state
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only
from tests.ledger.write.test_runs import FAILED, by_hand

RUN = UUID(int=77)


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return Place(ledger)


def launched(place: Place, decision: Decision, run: UUID = RUN) -> Decision:
    place.ledger.writer.decisions.launched(decision.id, run, place.later())
    return decision


def ended(place: Place, state: str = "Failed", at: datetime | None = None, run: UUID = RUN) -> list[Decision] | None:
    """Hear of an end now; `at` is the time of the state, if that is another one."""
    now = place.later()
    outcome = "failed" if state == "Failed" else "completed"
    state_at = at or now
    given = {"flow_run_id": run, "outcome": outcome, "at": state_at, "state_at": state_at}
    return place.ledger.writer.decisions.ended(state, now, **given)


def retried(place: Place, at: datetime | None = None) -> bool:
    now = place.later()
    return place.ledger.writer.decisions.retried(RUN, at or now, now, at=at or now)


def of_run(place: Place) -> tuple[str, str, bool]:
    record = place.ledger.reader.decisions.of_run(RUN)
    assert record is not None
    return record.status, record.run_state, record.ended is not None


def coalescing(place: Place) -> None:
    deploy(place.ledger, A, coalesce=True)
    launched(place, only(place.update(A)))


def test_4_7_a_run_that_is_retried_holds_the_queue_back_until_its_new_end(place: Place) -> None:
    coalescing(place)
    assert ended(place) == []
    assert of_run(place) == ("ended", "Failed", True)
    assert retried(place)
    assert of_run(place) == ("launched", "", False)
    assert [*place.ledger.reader.decisions.open_runs(10)] == [RUN]
    assert place.update(A) == []
    assert len(ended(place, "Completed") or []) == 1
    assert of_run(place) == ("ended", "Completed", True)


def test_4_7_the_newest_state_counts_in_whatever_order_they_are_heard(place: Place) -> None:
    coalescing(place)
    first, left, second, end = (place.now + timedelta(minutes=each) for each in range(1, 5))
    assert ended(place, at=second) == []
    assert not retried(place, left), "it left an older end"
    assert ended(place, at=first) is None
    assert ended(place, at=second) is None, "the same end, heard once more"
    assert retried(place, second + timedelta(seconds=1))
    assert not retried(place, second + timedelta(seconds=2)), "it goes on already"
    assert ended(place, at=second) is None, "the end before"
    assert of_run(place) == ("launched", "", False)
    assert ended(place, "Completed", end) == []
    assert of_run(place) == ("ended", "Completed", True)
    assert ended(place, "Failed", end + timedelta(minutes=1)) == [], "the retry before it was not heard"
    assert of_run(place) == ("ended", "Failed", True)


def test_4_7_a_run_that_was_deleted_stays_ended(place: Place) -> None:
    coalescing(place)
    place.ledger.writer.decisions.ended("Deleted", place.later(), flow_run_id=RUN, outcome="cancelled")
    assert not retried(place)
    assert not retried(place, NOW)


def test_8_7_a_failure_that_is_retried_in_prefect_is_no_failure_of_its_own(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1, retry_delay=timedelta(minutes=5)))
    launched(place, only(place.update(RAW)))
    assert ended(place) == []
    assert retried(place)
    assert not place.ledger.writer.clock.run(place.later(600), place.now).decisions, "its repetition is off"
    assert ended(place) == []
    assert place.names(place.ledger.writer.clock.run(place.later(600), place.now).decisions) == ["core"]


def test_8_6_a_run_by_hand_goes_on_again(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    run, runs = by_hand(place), place.ledger.writer.runs
    assert runs.goes_on(run, place.later()) == []
    assert runs.ended(run.run, FAILED, place.later(), place.now) == []
    assert not runs.retried(run.run, place.now, place.later()), "that is its end"
    assert [*place.ledger.reader.decisions.ended([run.run, uuid4()])] == [run.run]
    assert runs.retried(run.run, place.later(), place.now, place.now)
    assert [*place.ledger.reader.freshness.other_runs(10)] == [run.run]
    assert place.update(RAW) == []
    assert runs.ended(run.run, FAILED, place.later(), NOW) is None, "an end from before the retry"
    end = runs.ended(run.run, RunEnd("Completed", "completed"), place.later(), place.now)
    assert place.names(end or []) == ["core"]
    assert runs.ended(run.run, FAILED, place.later(), place.now) == [], "a newer end, whose retry was not heard"


def test_8_18_a_retry_that_completes_and_was_not_heard_brings_back_what_its_failure_took_off(place: Place) -> None:
    fresh_chain(place)
    launched(place, only(begin_backfill(place, CORE.uri)))
    assert ended(place) == []
    assert backfill_state(place) == ("failed", {"failed": 1, "removed": 1})
    board = only(ended(place, "Completed") or [])
    assert (place.names([board]), board.kind) == (["board"], "backfill")
    assert place.run("board", board, BOARD) == []
    assert backfill_state(place) == ("completed", {"done": 2})


def retry(place: Place, name: str, key: str | None = None) -> list[str]:
    return place.names(place.ledger.writer.freshness.retry(place.consumers[name].id, key, place.later()))


def test_8_7_a_retry_of_nothing_is_refused(place: Place) -> None:
    place.deploy("plain", kept([RAW], [CORE]))
    place.deploy("keyed", kept([RAW], [BOARD], mapper=IdentityMapper()))
    place.deploy("events", FlowDeclaration(ConsumerOptions(to_schedule(RAW))))
    writer, later = place.ledger.writer.freshness, place.later()
    with pytest.raises(InvalidCall, match="plain is not partitioned"):
        writer.retry(place.consumers["plain"].id, "a", later)
    with pytest.raises(InvalidCall, match="keyed has no key 'a'"):
        writer.retry(place.consumers["keyed"].id, "a", later)
    with pytest.raises(InvalidCall, match="the schedule of events is not Eager"):
        writer.retry(place.consumers["events"].id, None, later)
    with pytest.raises(UnknownConsumer):
        writer.retry(99, None, later)
