from __future__ import annotations

import pytest

from tests.environment import waiting
from tests.environment.waiting import LONGEST, until, until_async


class FakeTime:
    """A clock that only a pause moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.looks: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def has_come(self, moment: float) -> bool:
        self.looks.append(self.now)
        return self.now >= moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


def test_the_first_true_value_is_returned(clock: FakeTime) -> None:  # noqa: ARG001 (it sleeps at once)
    answers = iter([None, 0, "", "there", "later"])
    assert until(lambda: next(answers)) == "there"


def test_what_does_not_happen_in_time_fails_with_what_is_told(clock: FakeTime) -> None:
    with pytest.raises(AssertionError, match=r"^not within 3 s\nthe log"):
        until(lambda: clock.has_come(60), seconds=3, told=lambda: "the log")
    assert 3 <= clock.now <= 3 + LONGEST


@pytest.mark.parametrize("moment", [0.1, 1.0, 10.0, 60.0])
def test_an_answer_is_seen_a_tenth_of_the_wait_too_late_at_most(clock: FakeTime, moment: float) -> None:
    until(lambda: clock.has_come(moment))
    assert clock.now <= moment * 1.1


def test_a_long_wait_asks_rarely(clock: FakeTime) -> None:
    until(lambda: clock.has_come(60))
    assert len(clock.looks) < 300


async def test_tasks_wait_for_functions_and_for_coroutine_functions() -> None:
    answers = iter([None, "there"] * 2)

    async def asked() -> str | None:
        return next(answers)

    assert await until_async(lambda: next(answers)) == "there"
    assert await until_async(asked) == "there"
    with pytest.raises(TimeoutError):
        await until_async(lambda: None, seconds=0.01)
