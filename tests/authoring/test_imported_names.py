"""`outlet_events` and `inlet_events`: mappings inside a task, errors elsewhere, and outlets by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assetflow import Asset, AssetAlias, Metadata, inlet_events, outlet_events, task
from assetflow.authoring.past_events.sources import newest_events, resolve_name, resolve_outlet
from assetflow.authoring.recording import TaskRecording, current_recording
from assetflow.errors import ApiUnreachable, InvalidFlow, OutletError, RecordingFailed

ORDERS, CUSTOMERS, OTHER = Asset("s3://b/orders"), Asset("s3://b/customers"), Asset("s3://b/other")
ALIAS = AssetAlias("latest")


def extras() -> list[object]:
    recording = current_recording()
    assert recording is not None
    return [(update.asset.uri, update.extra, update.aliases) for update in recording.outcome.updates()]


@task(outlets=[ORDERS, ALIAS])
def writes() -> list[object]:
    outlet_events[ORDERS].extra = {"rows": 3}
    outlet_events[ORDERS].extra["day"] = 1
    outlet_events()[ORDERS].extra["hour"] = 2
    outlet_events[ALIAS].add(CUSTOMERS, extra={"rows": 4})
    return extras()


def test_an_extra_that_is_assigned_is_recorded() -> None:
    expected = [(ORDERS.uri, {"rows": 3, "day": 1, "hour": 2}, ()), (CUSTOMERS.uri, {"rows": 4}, ("latest",))]
    assert writes.fn() == expected


def test_assets_that_are_not_declared_are_refused() -> None:
    @task(inlets=[ORDERS], outlets=[ORDERS])
    def asks(ask: Callable[[], object]) -> None:
        ask()

    with pytest.raises(OutletError, match="to the task's outlets"):
        asks.fn(lambda: outlet_events[OTHER])
    with pytest.raises(KeyError, match="is not a declared inlet"):
        asks.fn(lambda: inlet_events[OTHER])


OUTSIDE: list[Callable[[], Any]] = [
    lambda: outlet_events[ORDERS],
    lambda: outlet_events(),
    lambda: list(outlet_events),
    lambda: ORDERS in outlet_events,
    lambda: outlet_events.get(ORDERS),
    lambda: inlet_events[ORDERS],
    lambda: inlet_events(),
    lambda: list(inlet_events),
    lambda: ORDERS in inlet_events,
    lambda: inlet_events.get(ORDERS),
]


@pytest.mark.parametrize("use", OUTSIDE, ids=range(len(OUTSIDE)))
def test_outside_of_a_task_the_error_says_what_to_do(use: Callable[[], Any]) -> None:
    with pytest.raises(InvalidFlow, match=r"was used where .* runs\. Use it inside a task that has"):
        use()


def test_metadata_and_an_assigned_extra_are_merged() -> None:
    @task(outlets=[ORDERS])
    def both() -> Any:
        outlet_events[ORDERS].extra = {"a": 1}
        yield Metadata(ORDERS, {"b": 2})
        return extras()

    assert both.fn() == [(ORDERS.uri, {"a": 1, "b": 2}, ())]


BY_NAME = Asset.ref(name="orders")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    return tmp_path


def recording() -> TaskRecording:
    return TaskRecording([BY_NAME], "run", 1, resolve_name=resolve_outlet)


@pytest.mark.usefixtures("home")
def test_a_task_fails_whose_outlet_cannot_be_looked_up_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.1")
    with pytest.raises(RecordingFailed, match="named 'orders' could not be recorded"):
        recording().complete()
    with pytest.raises(RecordingFailed, match="Retry the task"):
        recording().outcome.say(BY_NAME, {"rows": 3})
    with pytest.raises(ApiUnreachable):
        resolve_name("orders")
    assert newest_events([BY_NAME]) == newest_events([ORDERS]) == {}


@pytest.mark.usefixtures("home")
def test_without_a_ledger_a_name_is_unknown() -> None:
    made = recording()
    assert made.complete().events == ()
    assert made.outcome.unknown_names() == ["orders"]
