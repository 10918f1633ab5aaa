"""Listeners are called once for each cause, after the commit, in order, and do not disturb the evaluator."""

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from assetflow import listeners
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.timing import Deadline
from assetflow.evaluator.process import listeners as listeners_module
from assetflow.evaluator.process.listeners import ListenerThread
from assetflow.ledger import Ledger
from assetflow.listeners import DeadlineMissed, Listeners, RunCreated, load_listeners
from tests.environment.waiting import until
from tests.ledger import making
from tests.ledger.making import NOW, A, B, deploy

HOOKS = (
    "on_asset_created",
    "on_asset_alias_created",
    "on_asset_changed",
    "on_asset_event_emitted",
    "on_decision",
    "on_deadline_missed",
    "on_run_created",
)


class Ears:
    """Listeners that note their calls."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.listeners = Listeners({hook: [self._ear(hook)] for hook in HOOKS})

    def of(self, hook: str) -> list[Any]:
        return [value for name, value in self.heard if name == hook]

    def _ear(self, hook: str) -> Callable[[Any], None]:
        return lambda value: self.heard.append((hook, value))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as made:
        yield made


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners_module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(listeners, "_registered", {})


def update(ledger: Ledger, asset: Asset, **fields: Any) -> None:
    ledger.writer.events.record([making.update(asset, **fields)], NOW)


@pytest.mark.rule("9.8")
def test_a_missed_deadline_is_told_once(ledger: Ledger) -> None:
    ears = Ears()
    with ListenerThread(ledger, ears.listeners) as listening:
        consumer = deploy(ledger, A & B, "flow/both", deadline=Deadline(timedelta(hours=1), then="skip"))
        update(ledger, A)
        ledger.writer.clock.run(NOW + timedelta(hours=2), NOW + timedelta(hours=2))
        listening.wake()
        until(lambda: ears.of("on_deadline_missed"))
    with ListenerThread(ledger, ears.listeners):
        update(ledger, A)
        until(lambda: len(ears.of("on_asset_event_emitted")) == 2)
    due = NOW + timedelta(hours=1)
    late = DeadlineMissed("flow/both", consumer.deployment_id, None, due, (B.uri,), 1, "skip")
    assert ears.of("on_deadline_missed") == [late]


def test_example_21_each_listener_is_called_once_for_each_cause(ledger: Ledger) -> None:
    ears = Ears()
    with ListenerThread(ledger, ears.listeners) as listening:
        deploy(ledger, A & B, "flow/both")
        update(ledger, A)
        update(ledger, B, aliases=("lake",))
        listening.run_created(RunCreated(uuid4(), "flow/both", uuid4()))
        until(lambda: ears.of("on_decision") and ears.of("on_run_created"))
        update(ledger, A, aliases=("lake",))
        until(lambda: len(ears.of("on_asset_event_emitted")) == 3)
    assert sorted(ears.of("on_asset_created"), key=str) == [A, B]
    assert ears.of("on_asset_alias_created") == [AssetAlias("lake")]
    assert ears.of("on_asset_changed") == [A, B, A]
    assert [event.uri for event in ears.of("on_asset_event_emitted")] == [A.uri, B.uri, A.uri]
    (decision,) = ears.of("on_decision")
    assert (decision.consumer, [event.uri for event in decision.events]) == ("flow/both", [A.uri, B.uri])
    assert len(ears.of("on_run_created")) == 1


def test_the_next_evaluator_calls_listeners_from_where_the_last_one_stopped(ledger: Ledger) -> None:
    first, second = Ears(), Ears()
    with ListenerThread(ledger, first.listeners):
        update(ledger, A)
        until(lambda: first.of("on_asset_event_emitted"))
    update(ledger, B)
    with ListenerThread(ledger, second.listeners):
        until(lambda: second.of("on_asset_event_emitted"))
    assert [event.uri for event in first.of("on_asset_event_emitted")] == [A.uri]
    assert [event.uri for event in second.of("on_asset_event_emitted")] == [B.uri]


def test_an_error_of_a_listener_is_logged_and_others_are_called(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def breaks(_: Any) -> None:
        raise (SystemExit(1) if heard else ValueError("what a day"))

    with ListenerThread(ledger, Listeners({"on_asset_event_emitted": [breaks, heard.append]})):
        update(ledger, A)
        update(ledger, B)
        until(lambda: len(heard) == 2)
    assert "what a day" in caplog.text
    assert "breaks failed" in caplog.text


# Where listeners come from


def test_entry_points_are_loaded_and_a_broken_one_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Asset] = []
    plugin = SimpleNamespace(on_asset_created=heard.append)
    monkeypatch.setitem(sys.modules, "a_plugin", plugin)  # type: ignore[arg-type]
    points = [EntryPoint("good", "a_plugin", listeners.GROUP), EntryPoint("bad", "nowhere", listeners.GROUP)]
    monkeypatch.setattr(listeners, "entry_points", lambda group: points if group == listeners.GROUP else [])
    load_listeners(()).tell("on_asset_created", A)
    assert heard == [A]
    assert "nowhere" in caplog.text
