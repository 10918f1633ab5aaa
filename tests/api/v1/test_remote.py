"""The API as code elsewhere uses it: updates for another environment, and past events from afar."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
import respx

import assetflow
from assetflow.api.security import Access, Keys
from assetflow.authoring import remote
from assetflow.authoring.past_events.ledger_source import RecordedSource, RemoteLedger
from assetflow.authoring.past_events.reading import EventSequence, PastEventQuery
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.conditions import Token
from assetflow.errors import ApiRefused, ApiUnreachable, InvalidAsset, RecordingFailed, TooLarge
from assetflow.ledger import Ledger
from tests.api.conftest import Api, MakeApi
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update

KEY = "a-long-random-text"


def of(kind: str, value: str) -> PastEventQuery:
    return PastEventQuery(Token(kind, value))  # pyright: ignore[reportArgumentType]


def test_an_update_goes_to_another_environment(make_api: MakeApi, ledger: Ledger) -> None:
    api = make_api(Access(Keys(KEY)))
    deploy(ledger, "report/nightly", ORDERS)
    number = uuid4()
    for _ in range(2):
        event = assetflow.emit(ORDERS, {"rows": 1}, id=number, to=str(api.base_url), api_key=KEY)
    assert event.id == number
    (recorded,) = ledger.reader.events.find()
    assert (recorded.id, recorded.extra) == (number, {"rows": 1})
    assert (recorded.asset.name, recorded.origin.kind) == ("orders", "api")
    assert len(ledger.reader.decisions.find()) == 1


def test_the_emitting_key_is_enough_to_send_updates(make_api: MakeApi, ledger: Ledger) -> None:
    keys = Keys(KEY, f"{KEY}-read", f"{KEY}-emit")
    url = str(make_api(Access(keys)).base_url)
    assetflow.emit(ORDERS, to=url, api_key=keys.emit)
    assert ledger.reader.events.count() == 1
    with pytest.raises(RecordingFailed, match="may only read") as refused:
        assetflow.emit(ORDERS, to=url, api_key=keys.read)
    assert "ASSETFLOW_API_KEY_EMIT" in refused.value.fix


def test_what_cannot_be_sent_says_why(make_api: MakeApi, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.2")
    url = str(make_api(Access(Keys(KEY))).base_url)
    with pytest.raises(RecordingFailed, match="401") as refused:
        assetflow.emit(ORDERS, to=url, api_key="wrong")
    assert "right API key" in refused.value.fix
    with pytest.raises(RecordingFailed, match="does not answer"):
        assetflow.emit(ORDERS, to="http://127.0.0.1:9")
    with pytest.raises(TooLarge, match="bytes"):
        assetflow.emit(ORDERS, {"x": "x" * 70_000}, to=url, api_key=KEY)
    with pytest.raises(InvalidAsset):
        assetflow.emit("airflow://x", to=url, api_key=KEY)
    assert ledger.reader.events.count() == 0


def test_past_events_are_read_through_the_api(api: Api, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in range(7):
        update(ledger, ORDERS, minute, extra={"minute": minute}, aliases=("late",) if minute == 3 else ())
    update(ledger, CUSTOMERS, 20)
    monkeypatch.setattr("assetflow.authoring.past_events.ledger_source.PAGE", 3)
    remote = RemoteLedger(lambda: RemoteApi(str(api.base_url)))
    monkeypatch.setattr(RecordedSource, "_not_yet_recorded", lambda _self, _query: [])
    events = EventSequence(RecordedSource(remote), of("uri", ORDERS.uri))
    assert len(events) == 7
    assert events[-1].extra == {"minute": 6}
    assert [event.extra["minute"] for event in events[-2:]] == [5, 6]
    assert [event.extra["minute"] for event in events] == [*range(7)]
    assert [event.extra["minute"] for event in events[2:6]] == [2, 3, 4, 5]
    assert [event.extra["minute"] for event in events.after(NOON + timedelta(minutes=4))] == [5, 6]
    assert [event.extra["minute"] for event in EventSequence(RecordedSource(remote), of("alias", "late"))] == [3]
    assert len(EventSequence(RecordedSource(remote), of("name", "orders"))) == 7
    assert len(EventSequence(RecordedSource(remote), of("name", "nothing"))) == 0
    assert events[0] == ledger.reader.events.get(event_id(0))
    assert remote.known([event_id(1), event_id(99)]) == {event_id(1)}
    assert remote.newest_events([ORDERS.uri, "x"]) == ledger.reader.events.newest([ORDERS.uri])
    assert [pin.event for pin in remote.newest_events([ORDERS.uri]).values()] == [event_id(6)]
    assert (remote.owner_of("orders"), remote.owner_of("a/b?c")) == (ORDERS.uri, None)
    assert remote.created() == ledger.reader.created


def test_an_api_that_is_away_or_busy_for_too_long_is_said() -> None:
    with pytest.raises(ApiUnreachable):
        RemoteLedger(lambda: RemoteApi("http://127.0.0.1:9", patience=0.1)).created()
    with pytest.raises(ApiRefused):
        RemoteLedger(lambda: RemoteApi("no address", patience=0.1)).created()
    with respx.mock, RemoteApi("http://flows.test", patience=5) as api:
        respx.get("http://flows.test/x").respond(429, headers={"Retry-After": "60"})
        with pytest.raises(ApiUnreachable, match="answers 429"):
            api.get("/x")


def test_an_api_that_is_busy_is_asked_again_when_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(remote, "time", SimpleNamespace(sleep=pauses.append))
    busy = [httpx.Response(503, headers={"Retry-After": "2"}), httpx.Response(405), httpx.Response(502)]
    with respx.mock, RemoteApi("http://flows.test", patience=30) as api:
        respx.get("http://flows.test/x").mock(side_effect=[*busy, httpx.Response(200, json={"id": 1})])
        assert api.get("/x") == {"id": 1}
    assert pauses[0] == 2.0
    assert 0 < pauses[1] < pauses[2] < 1
