"""`POST /api/v1/consumers/{flow}/{deployment}/retry`, and `retry` in Python by it or beside the ledger (8.7)."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import assetflow
from assetflow.errors import ApiRefused, InvalidCall, LedgerError, UnknownConsumer
from assetflow.ledger import Ledger
from tests.api.conftest import Api, MakeApi
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import deploy, update
from tests.ledger.making import NOW
from tests.ledger.write.test_kept import RAW, Place, only

RETRY = "/api/v1/consumers/core/lake/retry"


def test_8_7_a_retry_makes_a_decision_and_tells_the_evaluator(failed: Place, make_api: MakeApi) -> None:
    told: list[bool] = []
    answer = make_api(on_recorded=lambda: told.append(True)).post(RETRY, json={}).json()
    newest = failed.ledger.reader.decisions.find()[0]
    assert answer["decisions"] == [{"id": str(newest.id), "consumer": "core/lake", "target_key": None}]
    assert told == [True]


def test_8_7_a_retry_of_nothing_is_refused(failed: Place, api: Api) -> None:
    deploy(failed.ledger, "report/shop", RAW)
    for path, code, where in (
        ("nobody/here/retry", 404, ""),
        ("report/shop/retry", 409, ""),
        ("core/lake/retry?all_failed=true", 422, "query.all_failed"),
        ("core/lake/retry?target_key=a", 422, "query.target_key"),
    ):
        answer = api.post(f"/api/v1/consumers/{path}", json={})
        assert (answer.status_code, answer.json().get("where") or "") == (code, where)


def failed_runs(ledger: Ledger, number: int) -> list[UUID]:
    """Let runs of a consumer that updates start fail; return them, oldest first."""
    deploy(ledger, "report/shop", RAW)
    runs = [UUID(int=each) for each in range(1, number + 1)]
    for run in runs:
        decision = only(update(ledger, RAW, run.int))
        ledger.writer.decisions.launched(decision.id, run, NOW)
        ledger.writer.decisions.ended("Failed", NOW, flow_run_id=run, outcome="failed")
    return runs


def with_states(states: dict[UUID, str]) -> FakePrefect:
    """A Prefect whose flow runs have these states, which it is told to change."""

    def answer(path: str, body: Any) -> Any:
        if path == "/flow_runs/filter":
            asked = [UUID(each) for each in body["flow_runs"]["id"]["any_"]]
            return [{"id": str(run), "state_type": states[run]} for run in asked if run in states]
        if body is not None:
            assert body["force"]
            states[UUID(path.split("/")[2])] = body["state"]["name"]
        return None

    return FakePrefect(answer)


def test_4_7_the_last_failed_run_of_a_consumer_runs_again_or_all_do(ledger: Ledger, make_api: MakeApi) -> None:
    first, second, running, gone = runs = failed_runs(ledger, 4)
    states = dict.fromkeys((first, second), "FAILED") | {running: "RUNNING"}
    api = make_api(prefect=with_states(states).connect)
    retry = "/api/v1/consumers/report/shop/retry"
    assert api.post(retry, json={}).status_code == 409, f"{gone} was deleted"
    answer = api.post(f"{retry}?all_failed=true", json={}).json()
    assert answer["flow_runs"] == [str(first), str(second)]
    assert answer["decisions"] == []
    assert states == {first: "AwaitingRetry", second: "AwaitingRetry", running: "RUNNING"}
    states.update(dict.fromkeys(runs, "CRASHED"))
    assert api.post(retry, json={}).json()["flow_runs"] == [str(gone)], "the newest one"


def test_8_7_python_retries_by_api(failed: Place, api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("ASSETFLOW_API_URL", str(api.base_url))
    made: list[UUID] = assetflow.retry("core/lake")
    assert made == [failed.ledger.reader.decisions.find()[0].id]
    with pytest.raises(ApiRefused, match="core/lake is not partitioned"):
        assetflow.retry("core/lake", "a")


def test_8_7_python_retries_beside_the_ledger(failed: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InvalidCall, match="'core' is not flow/deployment"):
        assetflow.retry("core")
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(LedgerError, match="there is no ledger"):
        assetflow.retry("core/lake")
    monkeypatch.setenv("ASSETFLOW_DATABASE_URL", f"sqlite:///{failed.ledger.place}")
    with pytest.raises(UnknownConsumer):
        assetflow.retry("core/nowhere")
    assert assetflow.retry("core/lake") == [failed.ledger.reader.decisions.find()[0].id]
