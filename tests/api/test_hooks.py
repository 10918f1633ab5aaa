"""Webhooks: a message that is signed as its watcher asks is an update, once (10.2, 10.8)."""

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from http.client import HTTPResponse
from uuid import uuid4

import httpx
import pytest

from assetflow.api import connections
from assetflow.api.security import Access, Keys
from assetflow.core.values.addresses import block
from assetflow.ledger import Ledger
from assetflow.watchers import WebhookTrigger
from tests.api.conftest import Api, MakeApi
from tests.api.fake_prefect import FakePrefect
from tests.environment.waiting import until
from tests.watching.outside import updates, watch

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
# The example of https://www.standardwebhooks.com is not used: its time stamp is long ago.
STANDARD, GITHUB = "/hooks/shop", "/hooks/pushes"


@pytest.fixture
def hooked(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    monkeypatch.setenv("GITHUB_SECRET", "hunter2")
    watch(ledger, WebhookTrigger("${SHOP_SECRET}", partition_key="day"), "shop", "s3://shop/orders")
    filtered = WebhookTrigger("${GITHUB_SECRET}", signs="github", filter={"ref": "refs/heads/main"})
    watch(ledger, filtered, "pushes", "s3://shop/code")
    return ledger


def body(**data: object) -> bytes:
    return json.dumps(data).encode()


def standard(content: bytes, number: str = "msg_1", key: bytes = KEY, moment: float | None = None) -> dict[str, str]:
    stamp = str(int(moment or datetime.now(UTC).timestamp()))
    signed = hmac.new(key, f"{number}.{stamp}.".encode() + content, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(b'other').decode()} v1,{base64.b64encode(signed).decode()}"
    return {"webhook-id": number, "webhook-timestamp": stamp, "webhook-signature": signature}


def github(content: bytes, number: str = "d1", secret: bytes = b"hunter2") -> dict[str, str]:
    signature = "sha256=" + hmac.new(secret, content, hashlib.sha256).hexdigest()
    return {"X-GitHub-Delivery": number, "X-Hub-Signature-256": signature}


def post(api: Api, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
    return api.post(path, content=content, headers={"content-type": "application/json", **headers})


def test_rule_10_8_a_signed_message_is_an_update_once(hooked: Ledger, make_api: MakeApi) -> None:
    api = make_api(Access(Keys("a key that nobody shows here")))
    content = body(day="2026-01-01")
    first, again = (post(api, STANDARD, content, standard(content)).json() for _ in range(2))
    assert (first, again["status"]) == ({"status": "recorded", "updates": 1, "reason": ""}, "known")
    (event,) = updates(hooked)
    assert (event.partition_key, event.origin.by) == ("2026-01-01", "Webhook shop, message msg_1")
    # Equal content with another id is another update.
    assert post(api, STANDARD, content, standard(content, "msg_2")).json()["status"] == "recorded"
    shown = {each.name: each for each in hooked.reader.watchers.all()}["shop"]
    assert (shown.state, shown.updates) == ("watching", 2)


def test_rule_10_8_github_signs_the_body(hooked: Ledger, api: Api) -> None:
    for ref, status in (("refs/heads/main", "recorded"), ("refs/heads/other", "filtered")):
        content = body(ref=ref)
        answer = post(api, GITHUB, content, github(content, ref))
        assert answer.json()["status"] == status
    assert [event.uri for event in updates(hooked)] == ["s3://shop/code"]


def seconds_ahead(seconds: float) -> float:
    return datetime.now(UTC).timestamp() + seconds


WRONG: list[tuple[str, str, Callable[[bytes], dict[str, str]], str]] = [
    ("no header", STANDARD, lambda _: {}, "webhook-id is missing"),
    ("other secret", STANDARD, lambda b: standard(b, key=b"another secret, of another sender"), "not signed"),
    ("other body", STANDARD, lambda b: standard(b + b" "), "not signed"),
    ("old", STANDARD, lambda b: standard(b, moment=seconds_ahead(-400)), "more than five minutes"),
    ("ahead", STANDARD, lambda b: standard(b, moment=seconds_ahead(400)), "more than five minutes"),
    *[
        ("no time", STANDARD, lambda b, no=no: {**standard(b), "webhook-timestamp": no}, "more than five minutes")
        for no in ("x", "1" + "0" * 400, "9" * 5_000, "1" * 13, "-1", "1e9")
    ],
    ("github without", GITHUB, lambda _: {}, "x-github-delivery is missing"),
    ("github other secret", GITHUB, lambda b: github(b, secret=b"hunter3"), "not signed"),
    ("github as standard", GITHUB, standard, "x-github-delivery is missing"),
]


@pytest.mark.parametrize(("path", "headers", "words"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_rule_10_8_what_is_not_signed_is_not_let_in(
    hooked: Ledger, api: Api, path: str, headers: Callable[[bytes], dict[str, str]], words: str
) -> None:
    content = body(day="2026-01-01")
    answer = post(api, path, content, headers(content))
    assert (answer.status_code, answer.json()["code"]) == (401, "wrong-signature")
    assert words in answer.json()["detail"]
    assert not updates(hooked)
    assert not hooked.reader.events.refused()


def test_a_message_that_cannot_be_an_update_is_kept_as_refused(hooked: Ledger, api: Api) -> None:
    for number, content in enumerate((b"{", body(other="x"))):
        answer = post(api, STANDARD, content, standard(content, f"m{number}"))
        assert (answer.status_code, answer.json()["status"]) == (200, "refused")
        assert answer.json()["reason"]
    assert len(hooked.reader.events.refused()) == 2


def test_what_cannot_be_taken_now_says_why(hooked: Ledger, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    content = body(day="2026-01-01")
    assert post(api, "/hooks/none", content, standard(content)).status_code == 404
    large = body(day="x" * 1_000_000)
    assert post(api, STANDARD, large, standard(large)).status_code == 413
    hooked.writer.watchers.switch("shop", paused=True, now=datetime.now(UTC))
    paused = post(api, STANDARD, content, standard(content))
    assert (paused.status_code, paused.json()["code"]) == (503, "watching-failed")
    hooked.writer.watchers.switch("shop", paused=False, now=datetime.now(UTC))
    monkeypatch.setenv("SHOP_SECRET", "not base64!")
    assert post(api, STANDARD, content, standard(content)).status_code == 422
    monkeypatch.delenv("SHOP_SECRET")
    unset = post(api, STANDARD, content, standard(content))
    assert "SHOP_SECRET is not set" in unset.json()["detail"]
    assert not updates(hooked)


def test_a_block_of_prefect_holds_the_secret(ledger: Ledger, make_api: MakeApi) -> None:
    place = "/block_types/slug/secret/block_documents/name/shop"
    prefect = FakePrefect(lambda path, _: {place: {"data": {"value": SECRET}}}[path])
    watch(ledger, WebhookTrigger(block("secret/shop")), "shop", f"s3://{uuid4()}")
    content = body(day="2026-01-01")
    api = make_api(prefect=prefect.connect)
    assert post(api, STANDARD, content, standard(content)).json()["status"] == "recorded"


def begin(api: Api, path: str, length: int, headers: dict[str, str]) -> socket.socket:
    """Open a connection, and send the head of a message, whose body is to come."""
    stranger = socket.create_connection((api.base_url.host, api.base_url.port or 80), timeout=30)
    head = {"host": "127.0.0.1", "content-length": str(length), "content-type": "application/json", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    stranger.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
    return stranger


def status_of(stranger: socket.socket) -> int:
    answer = HTTPResponse(stranger)
    answer.begin()
    return answer.status


@pytest.mark.usefixtures("hooked")
def test_a_body_that_does_not_arrive_is_answered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_FOR_BODY", 0.2)
    with begin(api, STANDARD, 20, standard(b"")) as stranger:
        stranger.sendall(b"12345")
        assert status_of(stranger) == 408


def test_strangers_cannot_make_the_server_hold_much(hooked: Ledger, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 150_000)
    content = body(day="2026-01-01")
    with ExitStack() as opened:
        for _ in range(2):
            stranger = opened.enter_context(begin(api, STANDARD, 100_000, standard(b"")))
            stranger.sendall(b"x" * 70_000)

        def is_refused() -> bool:
            answer = post(api, STANDARD, body(day="x" * 50_000), standard(b""))
            return answer.status_code == 503 and answer.headers["retry-after"] == "1"

        until(is_refused)
        # What is small still finds its place.
        assert post(api, STANDARD, content, standard(content)).json()["status"] == "recorded"
    until(lambda: post(api, STANDARD, body(day="x" * 50_000), standard(b"")).status_code == 401)
    assert len(updates(hooked)) == 1


def test_a_ledger_that_does_not_decide_takes_no_message(hooked: Ledger, make_api: MakeApi) -> None:
    content = body(day="2026-01-01")
    answer = post(make_api(other_ledger=lambda: "other"), STANDARD, content, standard(content))
    assert answer.status_code >= 400
    assert "other has taken over" in answer.json()["detail"]
    assert not updates(hooked)
