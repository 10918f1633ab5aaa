"""`assetflow watcher start` without an address of Prefect starts no server to be asked; what needs it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from assetflow import AssetWatcher
from assetflow.ledger import Ledger
from assetflow.watchers import FileTrigger, MessageQueueTrigger, block
from tests.environment.processes import children_of
from tests.environment.waiting import until
from tests.watching.outside import deploy, updates

pytestmark = pytest.mark.long
COMMAND = [sys.executable, "-m", "assetflow", "watcher", "start"]


def test_no_prefect_server_is_started_to_be_asked(ledger: Ledger, tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "prefect"
    folder.mkdir()
    files = FileTrigger(f"{folder}/*.json", every=timedelta(seconds=1), start="existing")
    queue = MessageQueueTrigger(block("secret/orders-queue"), queue="orders")
    deploy(ledger, AssetWatcher("files", files), AssetWatcher("queue", queue))
    (folder / "a.json").write_text("{}")
    env = {
        **{name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"},
        "ASSETFLOW_HOME": str(tmp_path),
        "ASSETFLOW_DATABASE_URL": "",
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    }
    with (tmp_path / "watcher.log").open("wb") as log:
        watcher = subprocess.Popen(COMMAND, env=env, stdout=log, stderr=log)
    try:
        until(lambda: len(updates(ledger)) == 1)
        failing = until(lambda: [each for each in ledger.reader.watchers.all() if each.state == "failing"])
        assert children_of(watcher.pid) == []
    finally:
        watcher.terminate()
        watcher.wait(30)
    assert [each.name for each in failing] == ["queue"]
    assert "PREFECT_API_URL is not set" in failing[0].error
    assert "prefect server start" in failing[0].error
    assert not list(home.glob("**/*.db"))
