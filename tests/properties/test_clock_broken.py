"""Each law of the clock is seen to fail with a broken copy of the rule that it watches over."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from assetflow.core.rules import clock
from assetflow.core.rules.state.state import Decisions, Receipts
from assetflow.core.rules.waits import TimedQueue
from assetflow.core.simulate import run
from assetflow.core.simulate.steps import Step
from assetflow.core.simulate.world import World
from tests.properties import test_clock as laws

# The examples are the same each time, and the first failure is enough.
SURE = settings(
    max_examples=1000,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
MINUTE = timedelta(minutes=1)
# The searches take a minute and a half together, and what they prove changes with the laws only.
pytestmark = pytest.mark.long
Break = Callable[[pytest.MonkeyPatch], None]


def receipts_stay(patch: pytest.MonkeyPatch) -> None:
    """What a decision consumes keeps its old receipt."""
    patch.setattr(Receipts, "consume", lambda *_: None)


def clock_oversleeps(patch: pytest.MonkeyPatch) -> None:
    """The clock wakes up three minutes after each instant."""
    due_at = clock.due_at

    def late(*given: Any) -> datetime | None:
        due = due_at(*given)
        return None if due is None else due + 3 * MINUTE

    patch.setattr(clock, "due_at", late)


def waits_end_early(patch: pytest.MonkeyPatch) -> None:
    """A wait until T is over with the first recording of T."""
    patch.setattr(TimedQueue, "_is_over", lambda queue, moment: moment <= queue.now)


def time_of_processing(patch: pytest.MonkeyPatch) -> None:
    """What came during a downtime counts a minute later."""
    carry_out: Callable[[World, Step, int, int], None] = run._carry_out

    def late(world: World, step: Step, number: int, pass_number: int) -> None:
        if number != pass_number:
            world.now += MINUTE
        carry_out(world, step, number, pass_number)

    patch.setattr(run, "_carry_out", late)


def nothing_waits_for_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TimedQueue, "_waits_for_more", lambda _: {})


def nothing_cools(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TimedQueue, "cool_at", None)


def no_run_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Decisions, "is_busy", lambda *_: False)


def always_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TimedQueue, "is_open", True)


BROKEN: list[tuple[Break, Callable[..., None]]] = [
    (receipts_stay, laws.test_each_event_has_one_receipt_and_is_in_one_run_at_most),
    (clock_oversleeps, laws.test_looking_at_random_moments_changes_nothing),
    (waits_end_early, laws.test_looking_where_a_wait_ends_changes_nothing_for_what_comes_at_that_instant),
    (time_of_processing, laws.test_an_evaluator_that_slept_decides_as_one_that_did_not),
    (nothing_waits_for_more, laws.test_the_bounds_of_intake_hold),
    (nothing_cools, laws.test_the_bounds_of_intake_hold),
    (no_run_goes_on, laws.test_a_run_waits_for_the_end_of_the_one_before),
    (always_open, laws.test_a_schedule_runs_while_it_is_open_and_once_for_each_opening),
]


def law_of(test: Any) -> Callable[[], None]:
    """Return a test of `test_clock` with other settings."""
    inner = test.hypothesis.inner_test
    given_data = [st.data()] if "data" in inner.__annotations__ else []
    return SURE(given(laws.scenarios(), *given_data)(inner))


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=[broken.__name__ for broken, _ in BROKEN])
def test_a_broken_copy_breaks_the_law(broken: Break, test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        law_of(test)()


def test_every_law_has_a_broken_copy() -> None:
    watched = {test.__name__ for _, test in BROKEN}
    assert {name for name in vars(laws) if name.startswith("test_")} == watched
