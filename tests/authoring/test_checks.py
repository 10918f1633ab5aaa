"""A check that cannot work is refused where it is declared. Contract 12.1, 12.4."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest

from assetflow import Asset, AssetAlias, asset, task
from assetflow.authoring import attempts
from assetflow.authoring.recording import TaskRecording, current_recording
from assetflow.checks import CheckResult, at_least, bounds, check, no_nulls, pandera_schema, unique, values
from assetflow.core.values.events import Recording
from assetflow.errors import CheckFailed, InvalidCheck
from assetflow.spark.checking import check_staged
from assetflow.spark.data_files import AttemptId
from assetflow.spark.writes import Write

ORDERS, BUCKET = Asset("file:///lake/orders"), Asset("s3://lake")
TABLE, NAME = Asset("postgres://shop/orders"), Asset("orders")


async def waits(_df: Any) -> bool:
    return True


def sane(_df: Any) -> bool:
    """Have sane amounts.

    More about it.
    """
    return True


def two(_df: Any, _day: str) -> bool:
    return True


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "another asset": (lambda: declared({BUCKET: at_least(1)}), "not an outlet"),
    "an alias": (lambda: declared({AssetAlias("x"): at_least(1)}), "not an outlet"),
    "a text": (lambda: declared({"orders": at_least(1)}), "is not an asset"),
    "no mapping": (lambda: declared([at_least(1)]), "names no outlets"),
    "a function": (lambda: declared({ORDERS: [sane]}), "is not a check"),
    "the same name": (lambda: declared({ORDERS: [at_least(1), at_least(2)]}), "two checks are named at_least"),
    "no staging": (lambda: task(outlets=[BUCKET], checks={BUCKET: at_least(1)})(load), "cannot hold data back"),
    "a database": (lambda: task(outlets=[TABLE], checks={TABLE: at_least(1)})(load), "cannot hold data back"),
    "a name": (lambda: task(outlets=[NAME], checks={NAME: at_least(1)})(load), "cannot hold data back"),
    "no staging of an @asset": (lambda: asset(uri=BUCKET.uri, checks=at_least(1))(load), "cannot hold data back"),
    "no rows": (lambda: at_least(0), "not a number of rows"),
    "no column": (lambda: no_nulls(), "needs the names of columns"),
    "a blank column": (lambda: unique(" "), "needs the names of columns"),
    "no values": (lambda: values("state", set()), "needs a set of values"),
    "a null among the values": (lambda: values("state", {None}), "needs a set of values"),
    "a text as values": (lambda: values("state", "open"), "needs a set of values"),
    "no bound": (lambda: bounds("amount"), "there is no bound"),
    "another severity": (lambda: at_least(1, severity="fatal"), "is not a severity"),  # type: ignore[arg-type]
    "two arguments": (lambda: check(two), "a function of one argument"),  # type: ignore[call-overload]
    "no schema of pandera": (lambda: pandera_schema({"id": int}), "is not a schema of pandera"),
    "async": (lambda: check(waits), "neither waits nor yields"),
}


def load() -> None: ...


def declared(checks: Any) -> Any:
    return task(outlets=[ORDERS], checks=checks)(load)


@pytest.mark.rule("12.4")
@pytest.mark.parametrize("name", REFUSED)
def test_rule_12_1_refused_where_it_is_declared(name: str) -> None:
    declare, text = REFUSED[name]
    with pytest.raises(InvalidCheck, match=text) as refused:
        declare()
    assert refused.value.code == "invalid-check"
    assert refused.value.fix


def test_rule_12_2_a_task_that_publishes_nothing_to_a_checked_outlet_makes_no_update() -> None:
    with pytest.raises(CheckFailed, match="published nothing that its checks have passed"):
        declared({ORDERS: at_least(1)}).fn()


def test_rule_12_6_an_attempt_records_what_was_held_back() -> None:
    found: dict[str | None, Any] = {
        "a": [CheckResult("n", "error", True, "n")],
        "b": [CheckResult("n", "error", False, "n", found=1)],
    }
    sent: list[Recording] = []
    for attempt in (1, 2):
        running = TaskRecording([ORDERS], "run", attempt)
        running.held_back(ORDERS, found)
        sent.append(running.fail())
    assert [[each.partition_key for each in one.told] for one in sent] == [["b"], ["b"]]
    assert len({each.id for one in sent for each in one.told} | {each.id for each in sent}) == 4
    assert not TaskRecording([ORDERS], "run", 1).fail().told


def test_rule_12_6_a_failed_check_of_staged_data_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {None: [CheckResult("at_least", "error", False, "at least 1 row", found=0)]}
    monkeypatch.setattr("assetflow.spark.checking.check_data", lambda *_: found)
    write: Any = Write(MagicMock(), ORDERS, checks=[at_least(1)])
    with TaskRecording([ORDERS], "run", 1).active() as running, pytest.raises(CheckFailed):
        check_staged(write, MagicMock(data=tmp_path), AttemptId("run", 1))
    (event,) = running.fail().held_back
    assert event.checks == tuple(found[None])


def test_rule_12_6_a_failed_attempt_tells_what_was_held_back_before_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Recording] = []

    @task(outlets=[ORDERS], checks={ORDERS: at_least(1)})
    def load_orders() -> None:
        running = current_recording()
        assert running is not None
        running.held_back(ORDERS, {None: [CheckResult("at_least", "error", False, "at least 1 row", found=0)]})
        raise RuntimeError("a caller wrapped CheckFailed")

    run = SimpleNamespace(id=UUID(int=7), run_count=2)
    context = SimpleNamespace(task=load_orders, task_run=run)
    monkeypatch.setattr(attempts, "TaskRunContext", SimpleNamespace(get=lambda: context))
    monkeypatch.setattr(attempts, "_emits", lambda: True)
    monkeypatch.setattr(attempts, "deliver", told.append)
    with pytest.raises(RuntimeError):
        load_orders.fn()
    assert [[each.uri for each in one.held_back] for one in told] == [[ORDERS.uri]]
