"""Example 21: each listener is called once per cause; one that raises harms nothing."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assetflow import Asset, AssetOrTimeSchedule, flow, listeners
from assetflow.testing import Harness, harness
from assetflow.timetables import CronTriggerTimetable
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

ORDERS = Asset("s3://listeners/orders")
HOOKS = (
    listeners.on_asset_created,
    listeners.on_asset_alias_created,
    listeners.on_asset_changed,
    listeners.on_asset_event_emitted,
    listeners.on_decision,
    listeners.on_run_created,
)

heard: list[tuple[str, Any]] = []


@flow(schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("0 0 * * *"), assets=ORDERS))
async def report() -> None: ...


def ear(hook: str) -> Callable[[Any], None]:
    def hear(value: Any) -> None:
        # The server is shared: deployments that other tests left there have assets too.
        if not isinstance(value, Asset) or value == ORDERS:
            heard.append((hook, value))

    return hear


def broken(_: Any) -> None:
    raise RuntimeError("no bell")


@pytest.fixture
def h(prefect_here: PrefectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:  # noqa: ARG001
    monkeypatch.setattr(listeners, "_registered", {})
    heard.clear()
    for hook in HOOKS:
        hook(broken)
        hook(ear(hook.__name__))
    with harness(use_running_server=True) as made:
        yield made


def counts() -> Counter[str]:
    return Counter(name for name, _ in heard)


@pytest.mark.prefect
def test_each_is_called_once(h: Harness, caplog: pytest.LogCaptureFixture) -> None:
    h.deploy(report)
    h.emit(ORDERS, aliases=("of the shop",))
    (run,) = h.settle().runs(report)
    causes = ("on_asset_created", "on_asset_alias_created", "on_asset_changed", "on_asset_event_emitted", "on_decision")
    # The decision's run, and three of the clock, which are made ahead.
    expected = dict.fromkeys(causes, 1) | {"on_run_created": 4}
    until(lambda: counts() == expected, seconds=30, told=lambda: str(counts()))
    told = [value for name, value in heard if name == "on_run_created"]
    assert [each.flow_run_id for each in told if each.decision is not None] == [run.id]
    assert all((each.decision is None) != (each.tick is None) for each in told)
    assert caplog.text.count("RuntimeError: no bell") >= len(heard)
