"""Which ledger decides, and what becomes of updates that came into one which decides no more."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import httpx
import pytest
import respx

from assetflow.errors import PrefectUnreachable
from assetflow.ledger import Ledger
from assetflow.ledger.read.events import DECIDED_UNTIL, only_here
from assetflow.operations.deciding_ledger import ASK_EVERY, Decider
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import BY_NAME, TAKEN_OVER, TaskApi
from tests.cli.conftest import API_URL, Call
from tests.cli.shop import ORDERS
from tests.environment.prefect_settings import prefect_at

OTHER = str(UUID(int=9))
VARIABLE = f"{API_URL}{BY_NAME}"
ANSWER = httpx.Response(200, json={"value": OTHER})


def silent() -> str | None:
    raise PrefectUnreachable("Prefect does not answer")


def test_what_prefect_once_answered_counts_until_it_answers_again(ledger: Ledger) -> None:
    asks: list[Callable[[], str | None]] = [lambda: OTHER, silent, lambda: str(ledger.reader.id)]
    times = iter(number * ASK_EVERY for number in range(10))
    decider = Decider(ledger.reader, lambda: asks.pop(0)(), lambda: next(times))
    assert [decider.other(), decider.other(), decider.other()] == [OTHER, OTHER, None]


@respx.mock
@pytest.mark.parametrize("answer", [{}, [], "ok", None], ids=str)
def test_without_a_ledger_something_that_is_not_prefect_stores_nothing(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.1")
    respx.route().respond(200, json=answer)
    with prefect_at(API_URL):
        sent = call("emit", ORDERS.uri)
    assert not (home / "ledger.db").exists()
    assert sent.code == 2
    assert "something that is not Prefect answered" in sent.err
    assert "--id" in sent.err


def test_what_came_before_reaches_the_other_ledger(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator was down when the other ledger took over, and Prefect was away."""
    known, lost, new = (UUID(int=number) for number in (1, 2, 3))
    connect = TaskApi.connect
    monkeypatch.setattr(TaskApi, "connect", lambda patience: connect(patience=min(patience, 0.1)))
    with respx.mock:
        variable = respx.get(VARIABLE).mock(side_effect=httpx.ConnectError("refused"))
        artifacts = respx.post(f"{API_URL}/artifacts/").mock(return_value=httpx.Response(503, json={}))
        respx.post(f"{API_URL}/events").respond(204)
        call("emit", ORDERS.uri, "--id", str(known))
        ledger.writer.set_cursor(DECIDED_UNTIL, 1)
        call("emit", ORDERS.uri, "--id", str(lost), "--extra", '{"rows": 1}')
        variable.mock(return_value=ANSWER)
        assert call("emit", ORDERS.uri, "--id", str(new)).code == 2
        assert ledger.reader.cursor(TAKEN_OVER) is None
        artifacts.mock(return_value=httpx.Response(201, json={"id": str(UUID(int=2))}))
        before = artifacts.call_count
        assert call("emit", ORDERS.uri, "--id", str(new), "--json").json["via"] == "prefect"
        sent = [recording_from_artifact(json.loads(each.request.content)) for each in list(artifacts.calls)[before:]]
    expected = [(lost, {"rows": 1}, None), (new, {}, None)]
    assert [(event.id, event.extra, event.sequence) for each in sent for event in each.events] == expected
    assert ledger.reader.cursor(TAKEN_OVER) == OTHER
    assert only_here(ledger.reader) == []
