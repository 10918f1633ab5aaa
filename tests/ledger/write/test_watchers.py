"""Watchers in the ledger: they follow the deployments that declare them, and what they find is recorded once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from assetflow import Asset, AssetWatcher
from assetflow.core.watchers.intake import CursorStep, Note, RefusedChange, WatcherIntake
from assetflow.errors import EvaluatorRunning
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import Role
from assetflow.watchers import FileTrigger, WebhookTrigger
from tests.ledger.making import NOW, A, declared, update

ONE, TWO = UUID(int=1), UUID(int=2)
FILES = FileTrigger("/in/*")
SOURCE = "amqp://mq:5672/ orders"


def declare(ledger: Ledger, deployment: UUID, *watchers: AssetWatcher, uri: str = "s3://lake/a") -> None:
    ledger.writer.lineage.declare(deployment, f"f/{deployment.int}", declared(Asset(uri, watchers=watchers)), NOW)


def names(ledger: Ledger) -> dict[str, list[str]]:
    return {each.name: [asset.uri for asset in each.assets] for each in ledger.reader.watchers.all()}


def test_rule_10_1_a_watcher_has_the_assets_of_all_its_deployments_and_goes_with_the_last(ledger: Ledger) -> None:
    declare(ledger, ONE, AssetWatcher("w", FILES))
    declare(ledger, TWO, AssetWatcher("w", FILES), uri="s3://lake/b")
    assert names(ledger) == {"w": ["s3://lake/a", "s3://lake/b"]}
    declare(ledger, ONE)
    assert names(ledger) == {"w": ["s3://lake/b"]}
    before = ledger.reader.watchers.latest_change()
    ledger.writer.consumers.forget(TWO, NOW)
    assert names(ledger) == {}
    assert ledger.reader.watchers.latest_change() != before


def test_rule_10_4_a_cursor_outlives_a_redeploy_and_goes_when_the_watcher_looks_elsewhere(ledger: Ledger) -> None:
    declare(ledger, ONE, AssetWatcher("w", FILES))
    ledger.writer.watchers.record(WatcherIntake("file://", cursor=CursorStep("w", {"/in/a": [1]})), NOW)
    ledger.writer.watchers.switch("w", paused=True, now=NOW)
    declare(ledger, ONE, AssetWatcher("w", replace(FILES, every=timedelta(seconds=9))))
    (kept,) = ledger.reader.watchers.all()
    assert (kept.begun, kept.paused, ledger.reader.watchers.items("w")) == (True, True, {"/in/a": [1]})
    declare(ledger, ONE, AssetWatcher("w", FileTrigger("/elsewhere/*")))
    (moved,) = ledger.reader.watchers.all()
    assert (moved.begun, moved.paused, ledger.reader.watchers.items("w")) == (False, True, {})


def test_rule_10_2_what_comes_again_is_neither_recorded_nor_counted_again(ledger: Ledger) -> None:
    declare(ledger, ONE, AssetWatcher("w", FILES))
    recording, refused = update(A), RefusedChange(uuid4(), {}, "not JSON", ("w",))
    made = {event.id: ("w",) for event in recording.events}
    intake = WatcherIntake(SOURCE, [recording], [refused], made, notes=[Note(uuid4(), "d")])
    ledger.writer.watchers.record(intake, NOW)
    ledger.writer.watchers.record(replace(intake, notes=[]), NOW)
    (watcher,) = ledger.reader.watchers.all()
    assert (watcher.updates, watcher.refused, watcher.last_update) == (1, 1, NOW)
    assert ledger.reader.watchers.notes(SOURCE) == intake.notes
    ledger.writer.watchers.acknowledged([intake.notes[0].token])
    assert ledger.reader.watchers.notes(SOURCE) == []


def test_an_evaluator_and_one_process_with_watchers_work_on_a_ledger_together(ledger: Ledger) -> None:
    evaluator, *others = (Holder(uuid4(), "host", number, Role.WATCHERS) for number in range(3))
    ledger.writer.lease.acquire(replace(evaluator, role=Role.EVALUATOR))
    ledger.writer.lease.acquire(others[0], is_alive=lambda _: True)
    with pytest.raises(EvaluatorRunning, match="another process runs the watchers"):
        ledger.writer.lease.acquire(others[1], is_alive=lambda _: True)
    assert ledger.reader.lease() is not None


def test_the_watchers_that_fail(ledger: Ledger) -> None:
    declare(ledger, ONE, *(AssetWatcher(name, FILES) for name in ("fails", "paused", "watches")))
    ledger.writer.watchers.set_state(["fails", "paused"], "failing", "there is no folder /in", NOW)
    ledger.writer.watchers.switch("paused", paused=True, now=NOW)
    (found,) = ledger.reader.watchers.failing()
    assert (found.name, [asset.uri for asset in found.assets]) == ("fails", ["s3://lake/a"])


def test_what_a_process_looks_after_are_watchers_that_are_not_paused_and_receive_no_webhooks(ledger: Ledger) -> None:
    assert ledger.reader.watchers.status().watchers == 0
    hook = AssetWatcher("hook", WebhookTrigger("${SECRET}"))
    declare(ledger, ONE, hook, *(AssetWatcher(name, FILES) for name in ("fails", "paused", "works")))
    ledger.writer.watchers.set_state(["hook", "fails", "paused"], "failing", "no such folder", NOW)
    ledger.writer.watchers.switch("paused", paused=True, now=NOW)
    told = ledger.reader.watchers.status()
    assert (told.watchers, told.failing, told.alive) == (2, {"fails": "no such folder"}, False)
