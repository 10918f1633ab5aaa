"""What is said of a request with a wrong field: what it is, and what it has to be."""

import json
from typing import Any

import pytest

from tests.api.conftest import Api

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body", "detail", "fix"),
    [
        ("/api/v1/events", {}, "body.events is missing", "Send it, too"),
        ("/api/v1/events", {"events": 1}, "body.events is not a list", "Send a JSON list, as in [1, 2]"),
        ("/api/v1/events", {"events": []}, "body.events is empty", "Fill it, or leave it out"),
        ("/api/v1/events/known", {"ids": ["x"]}, "body.ids.0 is not a UUID", "Write an id as in"),
        ("/api/v2/assets/events", {"asset_id": -1}, "body.asset_id is less than 0", "at least 0"),
        ("/api/v2/assets/events", {"asset_id": "x" * 9}, "body.asset_id is not a whole number", "Send a whole number"),
        ("/api/v2/assets/1/materialize", {"note": 1}, "body.note is not a text", "Send a text in double quotes"),
        (
            "/api/v2/assets/1/materialize",
            {"logical_date": "x"},
            "body.logical_date is not a time",
            "2026-01-01T00:00:00Z",
        ),
        (
            "/api/v2/assets/1/materialize",
            {"partition_key": "x" * 300},
            "is longer than 250 characters",
            "Make it shorter",
        ),
        ("/api/v1/simulate", {}, "'name' is missing", "Needed here: name"),
    ],
)
def test_a_wrong_field_is_told_with_what_it_has_to_be(api: Api, path: str, body: Any, detail: str, fix: str) -> None:
    answer = api.post(path, content=json.dumps(body), headers=JSON)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]
    assert fix in answer.json()["fix"]
    assert "Input should be" not in answer.text


def test_what_is_not_json_and_a_wrong_query_are_told_as_such(api: Api) -> None:
    answer = api.post("/api/v1/events", content=b"{", headers=JSON).json()
    assert answer["detail"].startswith("body is not JSON: ")
    assert (answer["where"], answer["fix"]) == ("body", "Send one JSON document in UTF-8")
    answer = api.get("/api/v2/assets?limit=many").json()
    assert (answer["detail"], answer["where"]) == ("query.limit is not a whole number", "query.limit")
