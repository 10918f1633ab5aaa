"""When a request is sent again."""

import math
from itertools import pairwise

import pytest

from assetflow.prefect_io.connection import AskAgain, Attempts, refuses, retry_after


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait_out(self, attempts: Attempts, asked: float | None = None) -> list[float]:
        """Wait before attempt after attempt until there is no other; the pauses."""
        pauses: list[float] = []
        while (pause := attempts.pause(asked)) is not None:
            pauses.append(pause)
            self.now += pause
        return pauses


@pytest.fixture
def time() -> Time:
    return Time()


def test_pauses_grow_up_to_the_longest_and_end_with_the_time(time: Time) -> None:
    pauses = time.wait_out(AskAgain(seconds=30).start(time))
    assert pauses[0] == pytest.approx(0.1, rel=0.21)
    assert all(after > before for before, after in pairwise(pauses[:6]))
    assert max(pauses) <= 4.0 * 1.2
    assert 20 < time.now < 30


def test_attempts_are_counted(time: Time) -> None:
    assert len(time.wait_out(AskAgain(times=5).start(time))) == 5
    assert time.wait_out(AskAgain(times=0).start(time)) == []


def test_time_that_the_attempts_themselves_take_counts(time: Time) -> None:
    attempts = AskAgain(seconds=15, times=5).start(time)
    time.now = 15.0
    assert attempts.pause() is None
    assert AskAgain(times=1).start(time).left == math.inf


def test_a_pause_that_the_other_side_asks_for_is_kept_unless_it_is_too_long(time: Time) -> None:
    attempts = AskAgain(seconds=10).start(time)
    assert attempts.pause(7.0) == 7.0
    assert attempts.pause(10.0) is None


def test_only_a_refusal_is_one_at_the_next_time_too() -> None:
    answers = (200, 302, 400, 401, 403, 404, 405, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504)
    assert [status for status in answers if refuses(status)] == [400, 401, 403, 404, 409, 413, 422]


@pytest.mark.parametrize(
    ("text", "seconds"), [("2", 2.0), ("0.5", 0.5), ("", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)]
)
def test_the_seconds_that_a_server_asks_for(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}) == seconds
    assert retry_after({}) is None
