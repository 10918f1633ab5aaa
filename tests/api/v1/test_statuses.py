"""Statuses, versions and plans through the API, and `status` in Python on top of either (8.9, 8.16)."""

from pathlib import Path
from urllib.parse import quote

import pytest

import assetflow
from assetflow import Asset
from assetflow.errors import InvalidCall, UnknownAsset
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.ledger.making import A, B, C

FACT = f"/api/v1/assets/{quote(B.uri, safe='')}"


@pytest.mark.usefixtures("stale")
def test_status_versions_and_plan_of_an_asset(api: Api) -> None:
    found = api.get(f"{FACT}/status").json()
    assert (found["state"], found["producer"], found["counts"]) == ("stale", "make-b/x", None)
    assert (found["causes"][0]["read"], found["causes"][0]["now"]) == ("first", "second")
    assert {found[name] for name in ("freshness", "data_time", "lag", "feasible")} == {None}, "it has no policy"
    assert [each["state"] for each in api.get("/api/v1/statuses").json()["items"]] == ["source", "stale", "missing"]
    told = api.get(f"/api/v1/assets/{quote(A.uri, safe='')}/versions").json()["items"]
    assert [each["data_version"] for each in told] == ["second", "first"]
    planned, _ = api.get("/api/v1/plan").json()["items"]
    assert (planned["consumer"], planned["targets"][0]["verdict"]) == ("make-b/x", "in_progress")
    assert api.get("/api/v1/plan", params={"consumer": "nobody/x"}).status_code == 404
    assert api.get("/api/v1/assets/nothing/status").status_code == 404
    assert api.get("/api/v1/assets/nothing/versions").status_code == 404


@pytest.mark.usefixtures("stale")
def test_status_in_python_asks_the_api(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("ASSETFLOW_API_URL", str(api.base_url))
    found = assetflow.status(Asset(B.uri))
    assert (found.state, found.causes[0].now) == ("stale", "second")
    assert [each.state for each in assetflow.status()] == ["source", "stale", "missing"]
    with pytest.raises(UnknownAsset):
        assetflow.status("nothing")


def test_status_in_python_reads_the_ledger_on_this_machine(stale: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_DATABASE_URL", stale._url.render_as_string(hide_password=False))
    monkeypatch.setenv("ASSETFLOW_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "1")
    assert assetflow.status(B.uri).state == "stale"
    assert [each.uri for each in assetflow.status()] == [A.uri, B.uri, C.uri]
    with pytest.raises(UnknownAsset):
        assetflow.status("s3://lake/nothing")
    with pytest.raises(InvalidCall):
        assetflow.status(None, "2026-01-01")  # type: ignore[call-overload]
