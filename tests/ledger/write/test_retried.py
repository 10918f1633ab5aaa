"""What ended goes on or runs again, because somebody asks for it. Contract 4.7, 8.6, 8.7."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.rules.ended_runs import RunEnd
from assetflow.core.values.consumers import Decision
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Intake
from assetflow.core.wire import FlowDeclaration
from assetflow.errors import InvalidCall, UnknownConsumer
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, deploy
from tests.ledger.write.test_backfills import begin as begin_backfill
from tests.ledger.write.test_backfills import fresh_chain
from tests.ledger.write.test_backfills import state as backfill_state
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only
from tests.ledger.write.test_lazy import BOARD as HOURLY_BOARD
from tests.ledger.write.test_lazy import lazy
from tests.ledger.write.test_runs import FAILED, by_hand

RUN = UUID(int=77)
DEBOUNCED = Intake(debounce=timedelta(minutes=1))


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


def test_4_7_what_a_retry_found_due_before_it_is_decided_first(place: Place) -> None:
    """The debounce was over while the run had ended, and nobody has looked since."""
    deploy(place.ledger, A, coalesce=True, intake=DEBOUNCED)
    assert place.update(A) == []
    first = only(place.ledger.writer.clock.run(place.later(120), place.now).decisions)
    launched(place, first)
    assert ended(place) == []
    assert place.update(A) == []
    place.later(120)
    assert retried(place)
    assert len(place.ledger.reader.decisions.waiting()) == 1


def test_8_6_a_retry_that_nobody_heard_has_tried_what_the_run_had(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    launched(place, only(place.update(RAW)))
    switch, number = place.ledger.writer.consumers.switch, place.consumers["core"].id
    switch(number, paused=True, now=place.later())
    assert (ended(place), place.update(RAW), ended(place)) == ([], [], [])
    assert place.names(switch(number, paused=False, now=place.later())[1]) == ["core"]


def test_8_7_a_failure_that_is_retried_in_prefect_is_no_failure_of_its_own(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1, retry_delay=timedelta(minutes=5)))
    launched(place, only(place.update(RAW)))
    assert ended(place) == []
    assert retried(place)
    assert not place.ledger.writer.clock.run(place.later(600), place.now).decisions, "its repetition is off"
    assert ended(place) == []
    assert place.names(place.ledger.writer.clock.run(place.later(600), place.now).decisions) == ["core"]


def test_8_15_the_time_between_end_and_retry_is_no_duration(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    launched(place, only(place.update(RAW)))
    ended(place)
    place.later(86_400)
    retried(place)
    ended(place, "Completed")
    with place.ledger.reader._states.open() as state:
        assert [*state.freshness.runs.durations(place.consumers["core"].id)] == [timedelta(seconds=1)]


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


def test_8_18_a_retry_whose_reader_is_removed_brings_back_nothing(place: Place) -> None:
    fresh_chain(place)
    launched(place, only(begin_backfill(place, CORE.uri)))
    assert ended(place) == []
    place.ledger.writer.consumers.remove(place.consumers["board"].id, place.later())
    assert retried(place)
    assert backfill_state(place) == ("running", {"asked": 1, "removed": 1})
    assert ended(place, "Completed") == []
    assert backfill_state(place) == ("failed", {"done": 1, "removed": 1})


def test_8_18_a_decision_that_is_replayed_brings_back_what_it_took_off(place: Place) -> None:
    fresh_chain(place)
    core = only(begin_backfill(place, CORE.uri))
    decisions = place.ledger.writer.decisions
    assert decisions.undeliverable(core.id, "no answer", place.later()) == []
    decisions.replay(core.id, place.later())
    assert backfill_state(place) == ("running", {"asked": 1, "removed": 1})
    assert place.names(place.run("core", core, CORE)) == ["board"]


def running(place: Place, at: datetime) -> bool:
    (record,) = place.ledger.reader.consumers.all()
    return bool(place.ledger.reader.past.at(record.consumer, NOW, at).running)


@pytest.mark.parametrize("how", ["retried", "replayed", "ended anew"])
def test_4_7_between_its_end_and_its_retry_a_run_did_not_go_on(place: Place, how: str) -> None:
    deploy(place.ledger, A, coalesce=True)
    decision = only(place.update(A))
    begun = place.now
    if how == "replayed":
        place.ledger.writer.decisions.undeliverable(decision.id, "refused", place.later())
    else:
        launched(place, decision)
        ended(place)
    over = place.now
    place.later()
    if how == "retried":
        assert retried(place)
    elif how == "replayed":
        place.ledger.writer.decisions.replay(decision.id, place.later())
    else:
        assert ended(place, "Completed") == []
    is_again = how != "ended anew"
    assert [running(place, each) for each in (begun, over, place.now)] == [True, False, is_again]


def retry(place: Place, name: str, key: str | None = None) -> list[str]:
    return place.names(place.ledger.writer.freshness.retry(place.consumers[name].id, key, place.later()))


def test_8_7_what_failed_runs_again_with_the_same_inputs(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    first = only(place.update(RAW))
    assert retry(place, "core") == [], "a run that goes on is not doubled"
    assert not place.end(first, "failed")
    second = only(place.ledger.writer.freshness.retry(place.consumers["core"].id, None, place.later()))
    assert second.id != first.id
    assert not place.run("core", second, CORE)
    assert retry(place, "core") == [], "nothing is out of date any more"


def test_8_7_a_retry_that_waits_runs_at_once(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1))
    assert not place.end(only(place.update(RAW)), "failed")
    assert retry(place, "core") == ["core"]
    assert not place.ledger.writer.clock.run(place.later(600), place.now).decisions


def test_8_7_what_catchup_waived_runs(place: Place) -> None:
    for key in ("a", "b", "c"):
        place.update(RAW, key)
    assert not place.deploy("core", kept([RAW], [CORE], mapper=IdentityMapper(), catchup="none"))
    assert retry(place, "core", "b") == ["core b"]
    assert retry(place, "core") == ["core a", "core c"]


def test_8_7_a_lazy_flow_tries_again(place: Place) -> None:
    place.deploy("board", lazy([RAW], [HOURLY_BOARD], retries=0))
    assert not place.end(only(place.update(RAW)), "failed")
    place.ledger.writer.freshness.retry(place.consumers["board"].id, None, place.later())
    (found,) = place.ledger.reader.freshness.plan(place.now)
    assert found.targets[0].verdict != "tried"


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


@pytest.mark.parametrize("retries", [0, 1])
def test_8_7_a_redeploy_without_retries_ends_the_one_that_waits(place: Place, retries: int) -> None:
    place.deploy("core", kept([RAW], [CORE], retries=1))
    place.end(only(place.update(RAW)), "failed")
    assert not place.deploy("core", kept([RAW], [CORE], retries=retries, lookback=9))
    place.later(3600)
    assert len(place.ledger.writer.clock.run(place.now, place.now).decisions) == retries
