"""Safe by default: who may call, and what keeps pages of other origins out."""

import json
from typing import Any

import pytest

from assetflow.api.connections import WrongKeys
from assetflow.api.security import Access, Keys, access_for
from assetflow.errors import InvalidSettings
from assetflow.ledger import Ledger
from tests.api.conftest import Api, MakeApi
from tests.cli.shop import ORDERS, update

KEY = "a-long-random-text"
BODY = json.dumps({"events": [{"uri": ORDERS.uri}]})
JSON = {"content-type": "application/json"}


async def at_once(_seconds: float) -> None: ...


def with_key() -> Access:
    """Access with a key, and no pause after a wrong one: tests/api/test_keys.py is about pauses."""
    return Access(Keys(KEY), wrong_keys=WrongKeys(sleep=at_once))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:1234"}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"host": "[::1]:4300"}, 200),
        ({"host": "evil.example"}, 400),
        ({"host": "evil.example:4300"}, 400),
        ({"host": "127.0.0.1.evil.example"}, 400),
        ({"host": "localhost@evil.example"}, 400),
        ({"host": "[::"}, 400),
        ({"host": ""}, 400),
    ],
)
def test_the_host_has_to_be_ours(api: Api, headers: dict[str, str], status: int) -> None:
    assert api.get("/api/v1/assets", headers=headers).status_code == status
    assert api.get("/api/v1/health", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (JSON, 200),
        (JSON | {"content-type": "Application/JSON; charset=utf-8"}, 200),
        (JSON | {"sec-fetch-site": "same-origin", "origin": "SELF"}, 200),
        (JSON | {"sec-fetch-site": "none"}, 200),
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "text/plain; application/json"}, 415),
        (JSON | {"origin": "http://evil.example"}, 403),
        (JSON | {"origin": "null"}, 403),
        (JSON | {"origin": "http://127.0.0.1:1"}, 403),
        (JSON | {"sec-fetch-site": "cross-site"}, 403),
        (JSON | {"sec-fetch-site": "same-site", "origin": "SELF"}, 403),
    ],
)
def test_a_write_is_json_and_from_our_own_pages(api: Api, ledger: Ledger, headers: dict[str, str], status: int) -> None:
    origin = str(api.base_url).rstrip("/")
    headers = {name: value.replace("SELF", origin) for name, value in headers.items()}
    assert api.post("/api/v1/events", content=BODY, headers=headers).status_code == status
    assert ledger.reader.events.count() == (status == 200)


def test_a_page_from_elsewhere_writes_and_deletes_nothing(api: Api, ledger: Ledger) -> None:
    update(ledger, ORDERS, 1)
    assert api.post("/api/v2/assets/1/materialize").status_code == 404
    assert api.post("/api/v2/assets/1/materialize", headers={"origin": "http://evil.example"}).status_code == 403
    answer = api.delete("/api/v2/assets/1/queuedEvents", headers={"origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in api.options("/api/v1/events", headers={"origin": "http://x"}).headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer  {KEY}"}, 200),
        ({"x-api-key": KEY}, 200),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": KEY}, 401),
        ({"x-api-key": KEY[:-1]}, 401),
        ({"x-api-key": f"{KEY}x"}, 401),
        ({"x-api-key": ""}, 401),
        ({"cookie": f"key={KEY}"}, 401),
    ],
)
def test_with_a_key_everything_but_health_needs_it(make_api: MakeApi, headers: dict[str, str], status: int) -> None:
    api = make_api(with_key())
    for path in ("/api/v1/assets", "/api/v2/assets", "/api/openapi.json"):
        answer = api.get(path, headers=headers)
        assert answer.status_code == status
        assert KEY not in answer.text
    assert api.get("/api/v1/nothing", headers=headers).status_code == (401 if status == 401 else 404)
    assert api.post("/api/v1/events", content=BODY, headers=JSON | headers).status_code == status
    assert api.get("/api/v1/health", headers=headers).json() == {"status": "ok"}


def test_who_has_the_key_may_write_from_anywhere_and_every_refusal_of_one_is_the_same(make_api: MakeApi) -> None:
    api = make_api(with_key())
    headers = JSON | {"x-api-key": KEY, "origin": "http://other.example"}
    assert api.post("/api/v1/events", content=BODY, headers=headers).status_code == 200
    told = {api.get("/api/v1/assets", headers={"x-api-key": key}).text for key in ("", "x", KEY[:-1], f"{KEY}x")}
    assert len(told) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_elsewhere_only_with_a_key(host: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        access_for(host, Keys())
    assert "ASSETFLOW_API_KEY" in refused.value.fix
    assert access_for(host, Keys(KEY)).keys.everything == KEY
    assert {access_for(here, Keys()).keys for here in ("127.0.0.1", "127.1.2.3", "::1", "localhost")} == {Keys()}


@pytest.mark.parametrize("key", [" x", "schlüssel", "a\nb"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        access_for("127.0.0.1", Keys(key))
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/api/v1/../../etc/passwd", 404),
        ("PATCH", "/api/v1/events", 405),
        ("POST", "/api/v2/assets/1", 405),
        ("GET", "/api/v1/simulate", 405),
        ("GET", "/api/v1/events/no-uuid", 422),
        ("GET", "/api/v2/assets/99999999999999999999", 422),
        ("GET", "/api/v2/assets?limit=x", 422),
        ("GET", "/api/v1/events?after=9999-12-31T23:59:59-12:00", 422),
        ("GET", "/api/v1/assets?search=%00", 422),
        ("GET", "/api/v1/assets/a%0Ab/status", 422),
    ],
)
def test_bad_requests_get_problems_without_tracebacks(api: Api, method: str, path: str, status: int) -> None:
    answer = api.request(method, path, headers=JSON)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b"[" * 100_000, b"\xff\xfe", b'{"events": [NaN', b'{"events": ' + b"9" * 5000 + b"}"),
        b'{"events": [{"uri": "s3://a/b", "extra": {"x": NaN}}, {"uri": "s3://a/b", "extra": {"x": 1e999}}]}',
    ],
)
def test_a_body_that_is_no_json_is_refused(api: Api, ledger: Ledger, body: bytes) -> None:
    assert api.post("/api/v1/events", content=body, headers=JSON).status_code in (400, 422)
    assert ledger.reader.events.count() == 0


def _chunks(size: int) -> Any:
    yield b'{"x": "'
    for _ in range(size // 100_000):
        yield b"x" * 100_000


def test_too_large_bodies_are_413_whatever_they_announce(api: Api, ledger: Ledger) -> None:
    announced = api.post("/api/v1/simulate", content=b"x" * 2_000_000, headers=JSON)
    assert (announced.status_code, announced.json()["code"]) == (413, "too-large")
    assert api.post("/api/v1/simulate", content=_chunks(2_000_000), headers=JSON).status_code == 413
    update(ledger, ORDERS, 1)
    body = {"asset_id": 1, "extra": {"x": "x" * 70_000}}
    assert api.post("/api/v2/assets/events", json=body).status_code == 413


def test_values_that_look_like_secrets_are_not_shown_and_text_is_sent_as_text(api: Api, ledger: Ledger) -> None:
    secret, hostile = "hunter2", "<script>alert(1)</script>\u202e\x1b[31m{{7*7}}"
    extra = {"db_password": secret, "nested": [{"apiKey": secret, "rows": 1}], "token": {"a": secret}, "max_tokens": 5}
    extra["text"] = hostile
    assert api.post("/api/v1/events", json={"events": [{"uri": ORDERS.uri, "extra": extra}]}).status_code == 200
    (event,) = ledger.reader.events.find()
    assert event.extra == extra
    for path in ("/api/v1/events", f"/api/v1/events/{event.id}", "/api/v2/assets/events", "/api/v1/assets"):
        answer = api.get(path)
        assert answer.status_code == 200
        assert secret not in answer.text
        assert (answer.headers["content-type"], answer.content.isascii()) == ("application/json", True)
    shown = api.get("/api/v1/events").json()["items"][0]["extra"]
    assert shown["nested"] == [{"apiKey": "[redacted]", "rows": 1}]
    assert (shown["max_tokens"], shown["text"]) == (5, hostile)


def test_what_did_not_change_is_not_sent_again(api: Api, ledger: Ledger) -> None:
    update(ledger, ORDERS, 1)
    first = api.get("/api/v1/assets")
    again = api.get("/api/v1/assets", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    update(ledger, ORDERS, 2)
    assert api.get("/api/v1/assets", headers={"if-none-match": first.headers["etag"]}).status_code == 200


def test_every_refusal_says_what_to_do(make_api: MakeApi) -> None:
    api = make_api(with_key())
    key = {"x-api-key": KEY}
    refused = [
        api.get("/api/v2/assets"),
        api.get("/api/v2/assets", headers={"host": "evil.example"}),
        api.get("/api/v9/nothing", headers=key),
        api.put("/api/v2/assets", headers=key),
        api.get("/api/v2/dags/7/assets/queuedEvents", headers=key),
        api.post("/api/v2/assets/events", headers={"origin": "https://evil.example"}),
    ]
    assert [each.status_code for each in refused] == [401, 400, 404, 405, 404, 401]
    assert all(each.json()["fix"] for each in refused)


def test_names_of_the_host_can_be_added() -> None:
    access = access_for("10.0.0.7", Keys(KEY), ["Flows.example.org ", ""])
    assert access.hosts == {"localhost", "127.0.0.1", "::1", "10.0.0.7", "flows.example.org"}
