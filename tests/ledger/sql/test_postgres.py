"""Errors of Postgres say what to do, never contain the password, and leave nothing half done."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from assetflow.core.values.assets import Asset
from assetflow.errors import InvalidEvent, LedgerError, TooLarge
from assetflow.ledger import Ledger, Reader
from assetflow.ledger import ledger as upkeep
from assetflow.ledger.sql import engine
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


@pytest.mark.postgres
def test_a_server_that_vanished_is_given_up_after_seconds_unless_the_address_says_otherwise() -> None:
    with new_database() as url:
        given = make_url(url).update_query_dict({"keepalives_idle": "60"})
        opened = engine.open_engine(given)
        with opened.connect() as connection:
            has = connection.connection.driver_connection.info.get_parameters()  # pyright: ignore
        opened.dispose()
    assert (has["tcp_user_timeout"], has["keepalives_idle"], has["keepalives_count"]) == ("20000", "60", "3")
