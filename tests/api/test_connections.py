"""Connections of strangers: bounded, closed when no header comes, and no reason to write a log."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from urllib.parse import urlsplit

import httpx
import pytest

from assetflow.api import connections
from assetflow.api.app import create_app
from assetflow.api.connections import Connection, Seldom
from assetflow.api.requests import Backend
from assetflow.ledger import Ledger
from tests.api.serving import serving

HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = HALF + b"\r\n"
FILES = 40


class Strangers:
    """Clients that do not finish what they begin."""

    def __init__(self, url: str) -> None:
        self._address = (urlsplit(url).hostname, urlsplit(url).port)
        self._opened = ExitStack()

    def connect(self, sends: bytes = HALF) -> socket.socket:
        made = self._opened.enter_context(socket.create_connection(self._address, timeout=20))
        made.sendall(sends)
        return made

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def url(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(connections, "most_files", lambda: FILES)
    monkeypatch.setattr(Connection, "may_tell", Seldom())
    with serving(create_app(Backend(ledger))) as url:
        yield url


@pytest.fixture
def strangers(url: str) -> Iterator[Strangers]:
    made = Strangers(url)
    yield made
    made.close()


def is_closed(client: socket.socket) -> bool:
    """Wait until the server closes the connection."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_header_that_does_not_end_ends_the_connection(strangers: Strangers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "seconds_for_header", 0.3)
    assert is_closed(strangers.connect())
    assert is_closed(strangers.connect(b""))
    second = strangers.connect(WHOLE)
    answer = HTTPResponse(second)
    answer.begin()
    assert answer.status == 200
    assert answer.read()
    second.sendall(HALF)
    assert is_closed(second)


def test_new_connections_replace_waiting_ones(url: str, strangers: Strangers, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "assetflow.server"):
        waiting = [strangers.connect() for _ in range(FILES)]
        with httpx.Client(base_url=url, timeout=20) as client:
            assert client.get("/health").status_code == 200
    assert is_closed(waiting[0])
    assert waiting[-1].send(b"\r\n") == 2
    assert waiting[-1].recv(1000).startswith(b"HTTP/1.1 200")
    assert [record.getMessage() for record in caplog.records] == [
        "all 20 connections are in use: each new one replaces the one that has waited longest for its client"
    ]


def test_a_body_that_does_not_come_holds_no_place(url: str, strangers: Strangers) -> None:
    fields = ["POST /api/v1/events HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", "Content-Length: 9"]
    head = "\r\n".join([*fields, "", ""]).encode()
    waiting = [strangers.connect(head) for _ in range(FILES)]
    with httpx.Client(base_url=url, timeout=20) as client:
        assert client.get("/health").status_code == 200
    assert is_closed(waiting[0])
