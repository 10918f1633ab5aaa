"""Values that databases cannot always hold are found again, or refused without harm to others."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from assetflow.core.values.assets import Asset
from assetflow.errors import InvalidEvent, LedgerError, LedgerLocked, LedgerVersion, StatementRefused
from assetflow.ledger import Ledger
from assetflow.ledger.sql.failures import explained
from assetflow.ledger.sql.tables import ASSET
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, update

ODD = ("a\x00b", "a\x00", "\x00", "\x00\x01a", "a\x01b", "\x01a", "\x01b\x00", "a", "ä\x00\U0001f600")


def stored(uri: str) -> Asset:
    """Return an asset as an older assetflow recorded it: today its URI would be refused."""
    asset = Asset("any")
    for name, value in (("uri", uri), ("name", uri)):
        object.__setattr__(asset, name, value)
    return asset


def test_texts_with_nul_are_found_again_on_sqlite(new_sqlite: NewLedger) -> None:
    ledger = new_sqlite()
    for uri in ODD:
        ledger.writer.events.record([update(stored(uri), aliases=(uri,))], NOW)
    again = Ledger.open(ledger.place, now=NOW)
    for uri in ODD:
        again.writer.events.record([update(stored(uri), aliases=(uri,))], NOW)
    assert sorted(each.uri for each in again.reader.assets.all()) == sorted(ODD)
    assert [event.uri for event in again.reader.events.find()] == [*ODD, *ODD]
    again.close()


@pytest.mark.postgres
def test_a_text_that_postgres_cannot_hold_is_an_invalid_event(new_postgres: NewLedger) -> None:
    with pytest.raises(InvalidEvent, match="cannot hold a value"):
        new_postgres().writer.events.record([update(stored("a\x00b"))], NOW)


def test_a_value_that_breaks_a_constraint_is_an_invalid_event(ledger: Ledger) -> None:
    ledger.writer.events.record([update(A)], NOW)
    row = {"uri": A.uri, "group": "", "extra": {}, "first_seen": NOW}
    with pytest.raises(InvalidEvent, match="cannot hold a value"), ledger.writes() as connection:
        connection.execute(insert(ASSET), [row])
    ledger.writer.events.record([update(A)], NOW)


@pytest.mark.parametrize(
    ("number", "said", "meant"),
    [
        (sqlite3.SQLITE_BUSY, "database is locked", LedgerLocked),
        (sqlite3.SQLITE_BUSY | 2 << 8, "database is locked", LedgerLocked),
        (sqlite3.SQLITE_FULL, "database or disk is full", LedgerError),
        (sqlite3.SQLITE_IOERR, "disk I/O error", LedgerError),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", LedgerError),
        (sqlite3.SQLITE_CORRUPT, "database disk image is malformed", LedgerError),
        (sqlite3.SQLITE_ERROR, "no such column: asset.group", LedgerVersion),
        (sqlite3.SQLITE_ERROR, "table event has no column named x", LedgerVersion),
        (sqlite3.SQLITE_ERROR, "no such table: event", LedgerError),
        # What a value can cause, whatever words the text has.
        (sqlite3.SQLITE_ERROR, "parser stack overflow", StatementRefused),
        (sqlite3.SQLITE_ERROR, "malformed JSON", StatementRefused),
        (sqlite3.SQLITE_ERROR, "too many SQL variables", StatementRefused),
        (sqlite3.SQLITE_ERROR, "bad JSON path: '$.host.connection'", StatementRefused),
        (sqlite3.SQLITE_ERROR, "unknown: no such column: in a value", StatementRefused),
        (sqlite3.SQLITE_MISUSE, "bad parameter or other API misuse: server", StatementRefused),
        (None, "Error binding parameter 1: type 'host' is not supported", StatementRefused),
    ],
)
def test_known_errors_of_the_database_differ_from_unknown_ones(
    number: int | None, said: str, meant: type[Exception]
) -> None:
    cause = sqlite3.OperationalError(said)
    if number is not None:
        cause.sqlite_errorcode = number
    with pytest.raises(meant) as raised, explained("ledger.db"):
        raise OperationalError("INSERT", {}, cause)
    assert type(raised.value) is meant


class Answered(Exception):
    """An error of Postgres, with its code if there was a connection."""

    def __init__(self, sqlstate: str | None, said: str) -> None:
        super().__init__(said)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("code", "said", "meant"),
    [
        (None, "connection to server at 127.0.0.1 failed: Connection refused", "does not answer"),
        (None, "consuming input failed: SSL SYSCALL error: EOF detected", "does not answer"),
        (None, 'FATAL:  role "x" does not exist', "does not let this user in"),
        (None, 'FATAL:  database "x" does not exist', "has no such database"),
        (None, "FATAL:  sorry, too many clients already", "has no free connection"),
        ("08006", "connection failure", "does not answer"),
        ("57P01", "terminating connection", "does not answer"),
        ("53100", "could not extend file", "disk of the ledger is full"),
        ("58030", "could not write", "gives errors"),
        ("40003", "statement completion unknown", "another process holds the ledger"),
        ("53200", "out of memory", "lacks memory"),
        ("53400", "configuration limit exceeded", "lacks memory"),
        ("57014", "canceling statement due to statement timeout", "stops statements"),
        ("57P05", "terminating connection due to idle-session timeout", "does not answer"),
        ("25P04", "terminating connection due to transaction timeout", "stops statements"),
        ("0A000", "the server cannot do this: too many hosts", "the database refuses"),
        ("22P05", "the connection holds a malformed character", "the database refuses"),
    ],
)
def test_errors_of_postgres_are_known_by_their_codes(code: str | None, said: str, meant: str) -> None:
    with pytest.raises(LedgerError, match=meant) as raised, explained("postgresql://here"):
        raise OperationalError("INSERT", {}, Answered(code, said))
    assert isinstance(raised.value, StatementRefused) is (meant == "the database refuses")


def test_a_process_that_uses_all_its_connections_has_trouble_with_the_ledger() -> None:
    with pytest.raises(LedgerError, match="in use"), explained("postgresql://here"):
        raise NoFreeConnection("QueuePool limit of size 5 overflow 10 reached")
