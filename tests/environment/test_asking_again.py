"""The tests' own client of Prefect asks again what may be answered later, and nothing else."""

from __future__ import annotations

import httpx
import pytest

from assetflow.prefect_io.connection import AskAgain
from tests.environment.asking_again import AskingAgain

QUICK = AskAgain(times=3, first_pause=0)


def asked(*answers: int | httpx.TransportError) -> tuple[httpx.Client, list[httpx.Request]]:
    """Return a client of a server with these answers, one after the other, and what reaches the server."""
    given, seen = iter(answers), list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        found = next(given)
        if isinstance(found, httpx.TransportError):
            raise found
        return httpx.Response(found)

    transport = AskingAgain(httpx.MockTransport(answer), QUICK)
    return httpx.Client(transport=transport, base_url="http://prefect"), seen


def test_a_busy_server_and_a_cut_connection_are_asked_again() -> None:
    client, seen = asked(503, httpx.ReadError("cut"), 201)
    assert client.post("/flows/", json={"name": "load"}).status_code == 201
    assert [request.content for request in seen] == [b'{"name":"load"}'] * 3


@pytest.mark.parametrize("status", [200, 404, 409, 500])
def test_any_other_answer_is_returned(status: int) -> None:
    client, seen = asked(status)
    assert client.get("/flows/").status_code == status
    assert len(seen) == 1


def test_patience_ends() -> None:
    client, seen = asked(*[503] * 4)
    assert client.get("/flows/").status_code == 503
    client, _ = asked(*[httpx.ReadTimeout("slow")] * 4)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/flows/")
    assert len(seen) == 4
