"""Errors of databases say what to do and contain no password; values that they cannot hold harm no others."""

import random
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from assetflow.core.values.assets import Asset
from assetflow.errors import InvalidEvent, LedgerError, LedgerLocked, LedgerVersion, StatementRefused, TooLarge
from assetflow.ledger import Ledger, Reader
from assetflow.ledger import ledger as upkeep
from assetflow.ledger.sql import engine
from assetflow.ledger.sql.failures import explained
from tests.environment.postgres import SERVER, new_database, on_server
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, A, B, update

PASSWORD = "hunter2"
OPENINGS = (Ledger.open, Reader.open, upkeep.check, upkeep.upgrade)


@dataclass(frozen=True)
class Guest:
    """A role that owns nothing, with the address of a database as this role and as its owner."""

    name: str
    owner_url: str
    url: str

    def grant(self, *rights: str) -> None:
        owner = create_engine(self.owner_url)
        with owner.begin() as connection:
            for right in rights:
                connection.execute(text(f"GRANT {right} TO {self.name}"))
        owner.dispose()


@pytest.fixture
def guest() -> Iterator[Guest]:
    name = f"guest_{uuid4().hex[:8]}"
    with new_database() as url:
        on_server(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        try:
            theirs = make_url(url).set(username=name, password=PASSWORD).render_as_string(hide_password=False)
            yield Guest(name, url, theirs)
        finally:
            on_server(f"REVOKE ALL ON DATABASE {make_url(url).database} FROM {name}")
            owner = create_engine(url)
            with owner.begin() as connection:
                connection.execute(text(f"DROP OWNED BY {name}"))
            owner.dispose()
            on_server(f"DROP ROLE {name}")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"postgresql://root:{PASSWORD}@127.0.0.1:1/x", "does not answer"),
        (f"postgresql+psycopg2://root:{PASSWORD}@127.0.0.1:1/x", "does not answer"),
        (f"postgresql://root:{PASSWORD}@127.0.0.1:1/x?options={PASSWORD}", "does not answer"),
        (f"postgresql://root:{PASSWORD}@127.0.0.1:one/x", "cannot be read"),
        (f"postgresql://root:{PASSWORD[:3]}@{PASSWORD[3:]}@127.0.0.1/x", "more than one @"),
        (f"mysql://root:{PASSWORD}@127.0.0.1/x?token={PASSWORD}", r"runs on SQLite and Postgres, not on mysql://root@"),
        (f"postgres://root:{PASSWORD}@127.0.0.1/x", "runs on SQLite and Postgres"),
        (f"sqlite://{PASSWORD}", "not on SQLite without a file"),
        ("not://a url at all", "not on not://a url at all"),
    ],
)
def test_addresses_that_cannot_be_used(address: str, said: str) -> None:
    for opening in OPENINGS:
        with pytest.raises(LedgerError, match=said) as raised:
            opening(address)
        assert raised.value.fix
        assert PASSWORD not in str(raised.value)
        assert PASSWORD[3:] not in str(raised.value)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"{SERVER}/nothing_of_this_name", "no such database"),
        (SERVER.replace("root", "nobody_here"), "let this user in"),
    ],
)
def test_databases_and_users_that_do_not_exist(address: str, said: str) -> None:
    for opening in OPENINGS:
        with pytest.raises(LedgerError, match=said):
            opening(address)


@pytest.mark.postgres
def test_a_user_without_rights_makes_no_tables(guest: Guest) -> None:
    for opening in (Ledger.open, upkeep.upgrade):
        with pytest.raises(LedgerError, match=r"lacks rights: permission denied for schema public.*CREATE") as raised:
            opening(guest.url)
        assert PASSWORD not in str(raised.value)
    assert upkeep.check(guest.owner_url).state == "empty"


@pytest.mark.postgres
def test_rights_to_read_suffice_to_read_and_rights_to_write_to_write(guest: Guest) -> None:
    upkeep.upgrade(guest.owner_url)
    with pytest.raises(LedgerError, match="lacks rights"):
        Reader.open(guest.url)
    guest.grant("SELECT ON ALL TABLES IN SCHEMA public")
    with Reader.open(guest.url) as reader:
        assert reader.events.count() == 0
    with Ledger.open(guest.url) as ledger:
        with pytest.raises(LedgerError, match=r"lacks rights.*INSERT, UPDATE, DELETE"):
            ledger.writer.events.record([update(A)], NOW)
        assert ledger.reader.events.count() == 0
    guest.grant(
        "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public", "USAGE ON ALL SEQUENCES IN SCHEMA public"
    )
    with Ledger.open(guest.url) as ledger:
        ledger.writer.events.record([update(A)], NOW)
        ledger.writer.events.refuse({}, "blank", None, "test", None, NOW)
        assert ledger.reader.events.count() == 1


@pytest.mark.postgres
def test_a_postgres_that_is_too_old(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OLDEST_POSTGRES", 99)
    for opening in OPENINGS:
        with pytest.raises(LedgerError, match=r"this is Postgres 1\d, and the ledger needs 99 or newer"):
            opening(postgres_url)


def test_without_the_driver_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"driver for Postgres.*assetflow\[postgres\]"):
        Ledger.open(f"{SERVER}/x")


@pytest.mark.postgres
def test_a_session_that_the_server_ended_is_opened_again(new_postgres: NewLedger, postgres_url: str) -> None:
    ledger = new_postgres()
    ledger.writer.events.record([update(A)], NOW)
    database = make_url(postgres_url).database
    on_server(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    ledger.writer.events.record([update(A)], NOW)
    assert ledger.reader.events.count() == 2


@pytest.mark.postgres
def test_a_value_that_postgres_cannot_hold_is_an_invalid_event(new_postgres: NewLedger) -> None:
    ledger = new_postgres()
    long = "".join(random.Random(1).choices([chr(number) for number in range(0x4E00, 0x9000)], k=1500))
    for name, kind in (("a\0b", InvalidEvent), (long, TooLarge)):
        with pytest.raises(kind) as raised:
            ledger.writer.events.record([update(A, Asset.known("s3://lake/odd", name))], NOW)
        assert not isinstance(raised.value, LedgerError)
    ledger.writer.events.record([update(B)], NOW)
    assert [each.uri for each in ledger.reader.events.find()] == [B.uri]


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
