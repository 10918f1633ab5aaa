"""Sessions of the pages: what they allow, how they end, and who is believed about TLS."""

import pytest

from assetflow.api.connections import FREE, WAITING, WrongKeys
from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.serving import serving
from tests.api.test_keys import Time
from tests.cli.shop import ORDERS, deploy, update
from tests.web.conftest import MakeSite, Site

KEYS = Keys("everything-0123456789", "read-0123456789abcdef", "emit-0123456789abcdef")
ACCESS = Access(KEYS)
CONSUMER = "/consumers/audit/all"


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    deploy(ledger, "audit/all", ORDERS, produces=(ORDERS,))
    update(ledger, ORDERS, 0)
    return ledger


def log_in(site: Site, key: str):
    return site.submit("/login", "/login", "/login", key=key)


def actions(site: Site, path: str) -> list[str]:
    """The forms of a page that change something."""
    return [given["action"] for given in site.page(path).named("form") if given.get("method") == "post"]


def test_the_reading_key_shows_pages_without_what_it_may_not_do(make_site: MakeSite, filled: Ledger) -> None:
    site = make_site(ACCESS)
    assert log_in(site, KEYS.everything).status_code == 303
    assert len(actions(site, CONSUMER)) == 4
    assert len(actions(site, "/asset?asset=orders")) == 3
    forms = {action: site.page(CONSUMER).form(action) for action in actions(site, CONSUMER)}
    site.cookies.clear()
    assert log_in(site, KEYS.read).status_code == 303
    for path in (CONSUMER, "/asset?asset=orders", "/assets", "/activity"):
        assert actions(site, path) == ["/logout"]
        assert "You may look, but not change anything" in site.page(path).text
        assert not [
            given for given in site.page(path).named("button") if "data-opens" in given and "hx-get" not in given
        ]
    token = site.page(CONSUMER).form("/logout")["csrf_token"]
    for action, fields in forms.items():
        if action != "/logout":
            refused = site.post(action, data=fields | {"csrf_token": token})
            assert refused.status_code == 403
            assert "his API key may only read" in refused.text
    assert filled.reader.events.count() == 1


def test_the_emitting_key_opens_no_pages(make_site: MakeSite) -> None:
    site = make_site(ACCESS)
    answer = log_in(site, KEYS.emit)
    assert answer.status_code == 403
    assert "This API key may only send updates." in answer.text
    assert site.get("/assets").status_code == 303


@pytest.mark.parametrize("key", [KEYS.everything, KEYS.read])
def test_a_session_that_was_ended_lets_nobody_in(make_site: MakeSite, key: str) -> None:
    site, elsewhere = make_site(ACCESS), make_site(ACCESS)
    log_in(site, key)
    first = dict(site.cookies)
    site.cookies.clear()
    log_in(site, key)
    second = dict(site.cookies)
    assert site.submit("/logout", "/assets", "/logout").status_code == 303
    site.cookies.update(first)
    assert site.get("/assets").status_code == 200, "the session of another browser goes on"
    for server in (site, elsewhere, make_site(ACCESS)):
        server.cookies.clear()
        server.cookies.update(second)
        assert server.get("/assets").status_code == 303
        assert server.get("/api/v1/assets").status_code == 401
        assert server.get("/login").status_code == 200


def test_without_the_ledger_no_session_is_believed(make_site: MakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_site(ACCESS)
    log_in(site, KEYS.everything)

    def fail(*_: object) -> bool:
        raise LedgerError("the ledger is held")

    monkeypatch.setattr("assetflow.ledger.read.reader.Reader.is_session_ended", fail)
    answer = site.get("/assets")
    assert answer.status_code == 503
    assert "he ledger is held" in answer.text


def test_another_key_ends_all_sessions(make_site: MakeSite) -> None:
    site, changed = make_site(ACCESS), make_site(Access(Keys(KEYS.everything, "another-0123456789abc")))
    log_in(site, KEYS.read)
    changed.cookies.update(site.cookies)
    assert changed.get("/assets").status_code == 303


def test_wrong_keys_at_the_login_wait_and_a_right_one_does_not(make_site: MakeSite) -> None:
    time = Time()
    wrong = WrongKeys(time, time.sleep)
    site = make_site(Access(KEYS, wrong_keys=wrong))
    assert [log_in(site, "wrong").status_code for _ in range(FREE + 2)] == [401] * (FREE + 2)
    assert time.slept == [1, 2]
    wrong._waiting = WAITING
    refused = log_in(site, "wrong")
    assert refused.status_code == 429
    assert "Too many wrong API keys came from your address. Try again in 5 seconds." in refused.text
    assert log_in(site, KEYS.everything).status_code == 303


@pytest.mark.parametrize(("proxies", "secure"), [("127.0.0.0/8", True), ("10.0.0.7", False)])
def test_a_trusted_proxy_makes_the_cookie_secure(ledger: Ledger, proxies: str, secure: bool) -> None:
    app = create_site(Backend(ledger), ACCESS)
    with serving(app, proxies=proxies) as url, Site(base_url=url, timeout=60) as site:
        site.headers["x-forwarded-proto"] = "https"
        assert ("Secure" in log_in(site, KEYS.everything).headers["set-cookie"]) is secure
