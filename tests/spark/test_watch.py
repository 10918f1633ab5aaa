"""The watch over Spark's work: it stops what has to stop, again if need be, and nothing else. Without Spark."""

import threading
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from assetflow.errors import SparkStopped
from assetflow.spark import watch as watch_module
from assetflow.spark.watch import Watch, Work
from tests.environment.waiting import until

SESSION = cast(Any, SimpleNamespace())


class Jobs:
    """What the watch has stopped, by tag."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.began: list[float] = []
        self.hangs = False

    def stop(self, _session: object, tag: str) -> None:
        self.began.append(time.monotonic())
        self.stopped.append(tag)
        while self.hangs:
            time.sleep(0.01)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    jobs = Jobs()
    monkeypatch.setattr(watch_module, "stop_jobs", jobs.stop)
    for name in ("LOOK_SECONDS", "ASK_SECONDS", "AGAIN_SECONDS"):
        monkeypatch.setattr(watch_module, name, 0.01)
    return jobs


def nobody(_runs: Iterable[UUID]) -> set[UUID]:
    return set()


def watches() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "assetflow-watch"]


def test_what_is_over_its_time_is_stopped_until_it_ends(jobs: Jobs) -> None:
    deadline = time.monotonic() + 0.1
    with Watch(nobody).over(Work(SESSION, "late", deadline=deadline)):
        until(lambda: len(jobs.stopped) >= 3, seconds=10)
    assert set(jobs.stopped) == {"late"}
    assert jobs.began[0] >= deadline
    until(lambda: not watches(), seconds=10)


@pytest.mark.parametrize("fails", [True, False])
def test_a_cancelled_run_ends_in_an_error_whatever_the_function_does(jobs: Jobs, fails: bool) -> None:
    cancelled, other = uuid4(), uuid4()
    watch = Watch(lambda runs: {cancelled} & set(runs))

    def work() -> None:
        with watch.over(Work(SESSION, "mine", frozenset({cancelled}))):
            until(lambda: jobs.stopped, seconds=10)
            if fails:
                raise RuntimeError("Spark says that the job was cancelled")

    with watch.over(Work(SESSION, "not mine", frozenset({other}))), pytest.raises(SparkStopped) as caught:
        work()
    assert isinstance(caught.value.__cause__, RuntimeError) == fails
    assert set(jobs.stopped) == {"mine"}


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_what_a_failed_function_left_is_stopped(jobs: Jobs, error: BaseException) -> None:
    with pytest.raises(type(error)), Watch(nobody).over(Work(SESSION, "mine")):
        raise error
    assert jobs.stopped == ["mine"]
