"""Values that databases cannot always hold are found again, or refused without harm to others."""

from __future__ import annotations

from typing import cast

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import DBAPIError, OperationalError

from assetflow.core.assets import Asset
from assetflow.errors import InvalidEvent, LedgerLocked, StatementRefused
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
    ("said", "meant"), [("database is locked", LedgerLocked), ("parser stack overflow", StatementRefused)]
)
def test_known_errors_of_the_database_differ_from_unknown_ones(said: str, meant: type[Exception]) -> None:
    error = OperationalError("INSERT", {}, cast(BaseException, Exception(said)))
    assert isinstance(error, DBAPIError)
    with pytest.raises(meant) as raised, explained("ledger.db"):
        raise error
    assert type(raised.value) is meant
