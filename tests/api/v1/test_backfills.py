"""Backfills of assets through the API (8.18)."""

from datetime import UTC, datetime

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import raw_core_board
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place

PATH = "/api/v1/backfills"
DAYS = ("2026-11-01", "2026-11-02")


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return raw_core_board(ledger, datetime.now(UTC), IdentityMapper(), DAYS)


@pytest.mark.usefixtures("place")
def test_a_preview_shows_the_waves_or_a_range_of_keys_and_begins_nothing(api: Api) -> None:
    told = api.post(PATH, json={"asset": CORE.uri, "down": True}, params={"preview": True}).json()
    assert told["total_targets"] == 4
    assert [[each["consumer"] for each in wave] for wave in told["waves"]] == [["core/shop"], ["board/shop"]]
    assert told["waves"][0][0]["target_keys"] == ["2026-11-01", "2026-11-02"]
    assert api.get(PATH).json() == {"items": [], "next": None}
    wanted = {"asset": CORE.uri, "from": "2026-11-02", "to": "2026-11-04"}
    told = api.post(PATH, json=wanted, params={"preview": True}).json()
    assert told["waves"][0][0]["target_keys"] == ["2026-11-02", "2026-11-03", "2026-11-04"]


def test_begin_show_stop_and_resume(api: Api, place: Place) -> None:
    wanted = {"asset": CORE.uri, "down": True, "concurrency": 1, "by": "ann", "why": "bugfix"}
    begun = api.post(PATH, json=wanted).json()
    assert (begun["number"], begun["state"], begun["by"], begun["total_targets"]) == (1, "running", "ann", 4)
    ((record, _),) = place.ledger.reader.decisions.waiting()
    assert (record.kind, record.target_key) == ("backfill", "2026-11-01")
    shown = api.get(f"{PATH}/1").json()
    waves = [(0, "core/shop", 1), (1, "board/shop", 2)]
    assert [(each["wave"], each["consumer"], each["counts"]["todo"]) for each in shown["waves"]] == waves
    (running,) = api.get(f"{PATH}/1/targets", params={"state": "asked"}).json()["items"]
    assert (running["consumer"], running["decision_id"]) == ("core/shop", str(record.id))
    assert api.post(f"{PATH}/1/stop", json={}).json()["state"] == "stopped"
    assert api.post(f"{PATH}/1/resume", json={}).json()["state"] == "running"
    second = api.post(PATH, json={"asset": BOARD.uri}).json()["number"]
    assert [each["number"] for each in api.get(PATH).json()["items"]] == [second, 1]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PATH, {"asset": RAW.uri}, 422),
        ("POST", PATH, {"asset": "s3://lake/nothing"}, 404),
        ("POST", PATH, {"asset": CORE.uri, "concurrency": 0}, 422),
        ("POST", PATH, {"asset": CORE.uri, "keys": [""]}, 422),
        ("POST", PATH, {"asset": CORE.uri, "from": "2026-11-01"}, 422),
        ("POST", PATH, {"asset": CORE.uri, "from": "2026-11-02", "to": "2026-11-01"}, 422),
        ("POST", PATH, {"asset": CORE.uri, "from": "2026-11-01", "to": "2026-11-01", "keys": ["2026-11-01"]}, 422),
        ("GET", f"{PATH}/7", None, 404),
        ("POST", f"{PATH}/7/stop", {}, 404),
        ("POST", f"{PATH}/{2**63 - 1}/resume", {}, 404),
    ],
)
def test_bad_requests(api: Api, method: str, path: str, body: object, status: int) -> None:
    answer = api.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
