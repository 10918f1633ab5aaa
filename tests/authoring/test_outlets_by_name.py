"""An outlet by name gets its update, or the task says why not: a ledger that does not answer is no unknown name."""

from __future__ import annotations

from pathlib import Path

import pytest

from assetflow.authoring.past_events import sources
from assetflow.authoring.past_events.sources import newest_events, resolve_name, resolve_outlet
from assetflow.authoring.recording import TaskRecording
from assetflow.core.values.assets import Asset
from assetflow.errors import ApiUnreachable, LedgerError, RecordingFailed

ORDERS = Asset.ref(name="orders")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    return tmp_path


def recording() -> TaskRecording:
    return TaskRecording([ORDERS], "run", 1, resolve_name=resolve_outlet)


@pytest.mark.usefixtures("home")
def test_a_task_fails_whose_outlet_cannot_be_looked_up_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.1")

    with pytest.raises(RecordingFailed, match="named 'orders' could not be recorded"):
        recording().complete()
    with pytest.raises(RecordingFailed, match="Retry the task"):
        recording().outcome.say(ORDERS, {"rows": 3})
    with pytest.raises(ApiUnreachable):
        resolve_name("orders")
    assert newest_events([ORDERS]) == {}


def test_a_ledger_that_cannot_be_read_is_no_ledger_without_the_name(home: Path) -> None:
    (home / "ledger.db").write_text("not a ledger")

    with pytest.raises(RecordingFailed, match="damaged"):
        recording().complete()
    with pytest.raises(LedgerError):
        resolve_name("orders")
    assert newest_events([ORDERS]) == {}
    assert sources.open_source() is not None


@pytest.mark.usefixtures("home")
def test_without_a_ledger_a_name_is_unknown() -> None:
    made = recording()

    assert made.complete().events == ()
    assert made.outcome.unknown_names() == ["orders"]
