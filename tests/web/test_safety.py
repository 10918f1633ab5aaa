"""Safe by default: logging in, forms of other pages, headers, and text of users that wants to be more than text."""

import logging
import re
from urllib.parse import quote

import pytest

from assetflow.api.security import Access, Keys
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.web.pages import url
from tests.cli.shop import ORDERS, deploy, event_id, update
from tests.web.conftest import MakeSite, Site
from tests.web.html import read

KEY = "a-long-random-text"
ASSET = "/asset?asset=orders"


@pytest.fixture
def locked(make_site: MakeSite, ledger: Ledger) -> Site:
    update(ledger, ORDERS, 0)
    return make_site(Access(Keys(KEY)))


def log_in(site: Site, key: str = KEY, following: str = "/assets"):
    return site.submit("/login", f"/login?next={following}", "/login", key=key)


def test_the_login_leads_back_and_its_cookie_is_not_the_key(locked: Site) -> None:
    answer = locked.get("/asset", params={"asset": "orders", "key": "a b"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fasset%3Fasset%3Dorders%26key%3Da%2Bb"
    answer = locked.submit("/login", answer.headers["location"], "/login", key=KEY)
    assert answer.headers["location"] == "/asset?asset=orders&key=a+b"
    assert locked.get("/assets").status_code == 200
    cookie = answer.headers["set-cookie"]
    assert KEY not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}


def test_a_wrong_key_opens_nothing(locked: Site) -> None:
    answer = log_in(locked, "a-long-random-texT")
    assert answer.status_code == 401
    assert "The API key is wrong." in answer.text
    assert locked.get("/assets").status_code == 303
    assert locked.get("/api/v1/assets").status_code == 401


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + "01"[text[-1] == "0"], lambda text: "1" + text, lambda _: "..", lambda _: ""]
)
def test_a_cookie_that_was_changed_opens_nothing(locked: Site, change) -> None:
    log_in(locked)
    (name, value), *_ = locked.cookies.items()
    locked.cookies.clear()
    locked.cookies.set(name, change(value))
    assert locked.get("/assets").status_code == 303


def test_the_login_opens_the_api_for_our_own_pages_only(locked: Site) -> None:
    log_in(locked)
    assert locked.get("/api/v1/assets").status_code == 200
    body = {"events": [{"uri": ORDERS.uri}]}
    assert locked.post("/api/v1/events", json=body, headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "following", ["//evil.example", "https://evil.example", "/\\evil.example", "/login", "x", "%0d%0aa"]
)
def test_the_login_leads_to_no_other_place(locked: Site, following: str) -> None:
    assert log_in(locked, following=following).headers["location"] == "/"


def test_a_form_that_was_sent_without_a_login_is_kept_until_after_it(locked: Site, ledger: Ledger) -> None:
    typed = {"asset": "orders", "extra": '{"rows": 12}'}
    answer = locked.post("/asset/events?asset=orders", data={**typed, "csrf_token": "0" * 64})
    assert answer.status_code == 401
    assert "Your login has expired, so nothing was changed." in answer.text
    wrong = locked.post("/login", data=read(answer.text).form("/login") | {"key": "wrong"})
    assert wrong.status_code == 401
    right = locked.post("/login", data=read(wrong.text).form("/login") | {"key": KEY})
    assert "Nothing was changed" in right.text
    known = ledger.reader.events.count()
    again = read(right.text).form("/asset/events")
    assert again.items() >= typed.items()
    assert locked.post("/asset/events", data=again).status_code == 303
    assert ledger.reader.events.count() == known + 1


def test_the_login_shows_nothing_that_a_form_of_another_page_has_sent(locked: Site) -> None:
    answer = locked.post("/asset/events", data={"asset": "orders"}, headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fasset%2Fevents")


def test_before_the_login_pages_and_scripts_are_told_nothing(locked: Site) -> None:
    page = locked.page("/login")
    assert "evaluator" not in page.text
    assert locked.get("/static/css/base.css").status_code == 200
    assert locked.get("/live").status_code == 303
    answer = locked.get("/assets", headers={"hx-request": "true"})
    assert (answer.status_code, answer.text) == (401, "")


@pytest.mark.parametrize(
    ("fields", "headers", "status"),
    [
        ({}, {}, 422),
        ({"csrf_token": "0" * 64}, {}, 422),
        ({"csrf_token": "OK"}, {"origin": "http://evil.example"}, 403),
        ({"csrf_token": "OK"}, {"sec-fetch-site": "cross-site"}, 403),
        ({"csrf_token": "OK"}, {"host": "evil.example"}, 400),
        ({"csrf_token": "OK"}, {"content-type": "text/plain"}, 422),
        ({"csrf_token": "OK"}, {}, 303),
    ],
)
def test_other_pages_change_nothing(
    site: Site, ledger: Ledger, fields: dict[str, str], headers: dict[str, str], status: int
) -> None:
    deploy(ledger, "audit/all", ORDERS)
    token = site.page(ASSET).form("/asset/events")["csrf_token"]
    fields = {name: token if value == "OK" else value for name, value in fields.items()}
    answer = site.post("/asset/events", data={"asset": "orders"} | fields, headers=headers)
    assert answer.status_code == status
    assert len(ledger.reader.events.find()) == (status == 303)


def test_a_token_of_before_the_login_does_not_hold_after_it(locked: Site, ledger: Ledger) -> None:
    before = locked.page("/login").form("/login")["csrf_token"]
    log_in(locked)
    known = ledger.reader.events.count()
    typed = {"asset": "orders", "extra": '{"rows": 12}', "partition_key": "2026"}
    answer = locked.post("/asset/events?asset=orders", data={**typed, "csrf_token": before})
    assert answer.status_code == 422
    assert "older than the server or your login" in answer.text
    assert ledger.reader.events.count() == known
    # What was typed is there, and is sent again with a token that holds.
    again = read(answer.text).form("/asset/events")
    assert again.items() >= typed.items()
    assert locked.post("/asset/events", data=again).status_code == 303
    (event,) = ledger.reader.events.find(newest_first=True, limit=1)
    assert (event.extra, event.partition_key) == ({"rows": 12}, "2026")


def test_an_old_login_form_does_not_show_the_key(locked: Site) -> None:
    answer = locked.post("/login", data={"key": "typed-key", "csrf_token": "old"})
    assert answer.status_code == 422
    assert "Enter the API key once more" in answer.text
    assert "typed-key" not in answer.text


@pytest.mark.parametrize(
    "path", ["/assets", "/nothing", "/login", "/static/js/page.js", "/static/nothing", "/troubles"]
)
def test_browsers_are_held_to_a_strict_policy(site: Site, path: str) -> None:
    answer = site.get(path)
    parts = [part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")]
    policy = {name: value for name, _, value in parts}
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


EVIL = "<img src=x onerror=alert(1)>\"'{{7*7}}\x1b[31m\u202e</script><script>alert(2)</script>"
INERT = re.compile(r"<img src|<script>alert|\{\{49|\x1b|\u202e|onerror=alert\(1\)>\"", re.IGNORECASE)


def test_text_of_users_is_text_on_every_page(site: Site, ledger: Ledger) -> None:
    asset = Asset("s3://lake/evil", name="evil\x1b[31m\u202e<b>{{7*7}}", group=EVIL, extra={EVIL: EVIL})
    run = SourceFlowRun(event_id(99), EVIL, flow_name=EVIL, deployment_name=EVIL, parameters={EVIL: EVIL})
    origin = Origin("task", SourceTaskRun(event_id(98), EVIL), run)
    flow = f"{EVIL.replace('/', '')}/{EVIL.replace('/', '')}"
    deploy(ledger, flow, asset & AssetAlias(EVIL) & ORDERS, produces=(asset,))
    key = EVIL[:200]
    update(ledger, asset, 1, key, origin=origin, extra={EVIL: [EVIL]}, aliases=(EVIL,))
    for path in (
        "/assets",
        url("/assets", search=EVIL[:40]),
        "/asset?asset=s3://lake/evil",
        "/asset/partitions?asset=s3://lake/evil",
        f"/events/{event_id(1)}",
        "/consumers",
        f"/consumers/{quote(flow)}",
        f"/consumers/{quote(flow)}/condition",
        "/activity",
        "/activity?show=all",
    ):
        answer = site.get(path)
        assert answer.status_code == 200, path
        assert not INERT.search(answer.text), path
        page = read(answer.text)
        assert not [name for name, given in page.tags for each in given if each.startswith("on")], path
    for path, status in (("/asset", 404), ("/nothing", 404), ("/events/x", 404)):
        answer = site.get(url(path, asset="<img src=x onerror=alert(1)>", next=EVIL[:40]))
        assert answer.status_code == status
        assert not INERT.search(answer.text)


def test_no_page_has_scripts_or_styles_of_its_own(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "audit/all", ORDERS, produces=(ORDERS,))
    update(ledger, ORDERS, 0)
    for path in ("/assets", ASSET, f"/events/{event_id(0)}", "/nothing"):
        tags = site.page(path).tags
        assert all(given.get("src", "").startswith("/static/") for name, given in tags if name == "script")
        assert not [given for name, given in tags if "style" in given or name == "style"]
        assert not [
            link for name, given in tags if name in ("link", "script") for link in given.values() if "//" in link
        ]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/hooks/shop", 405), ("POST", "/hooks/shop", 404), ("POST", "/hooks/a/b", 404), ("GET", "/api/v1/x", 401)],
)
def test_programs_are_answered_with_problem_documents(locked: Site, method: str, path: str, status: int) -> None:
    answer = locked.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"]


@pytest.mark.parametrize(("error", "status"), [(LedgerError("the ledger is held"), 503), (ZeroDivisionError(), 500)])
def test_a_failure_is_a_page_without_a_traceback(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, status: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("assetflow.ledger.read.reader.Reader.evaluators", fail)
    with caplog.at_level(logging.CRITICAL, "assetflow.web"):
        answer = site.get("/assets")
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    assert "<h1>" in answer.text
