"""Turn the errors of a database into errors that say what to do."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from assetflow.errors import (
    AssetflowError,
    InvalidEvent,
    LedgerError,
    LedgerLocked,
    LedgerVersion,
    StatementRefused,
    TooLarge,
)

_DAMAGED = "Move it away and rebuild it from what Prefect kept: `assetflow evaluator start --take-over --since DATE`"

Cause = tuple[type[LedgerError], str, str]

_LOCKED: Cause = (LedgerLocked, "another process holds the ledger", "Stop the process that holds it open")
_FULL: Cause = (LedgerError, "the disk of the ledger is full", "Free some space; nothing was half-written")
_NONE: Cause = (
    LedgerError,
    "the database holds no ledger",
    "Check the address; `assetflow database upgrade` makes one",
)
_SILENT: Cause = (LedgerError, "the database does not answer", "Check that it runs, and its address")
_NO_ENTRY: Cause = (
    LedgerError,
    "the database does not let this user in",
    "Check user and password in ASSETFLOW_DATABASE_URL, and whether the server accepts connections from here",
)
_NO_DATABASE: Cause = (LedgerError, "the server has no such database", "Create it (`createdb`), or check the address")
_NO_RIGHTS: Cause = (
    LedgerError,
    "the user of the database lacks rights",
    "To make and upgrade the tables it has to own the database or have CREATE on its schema; to work with them, "
    "SELECT, INSERT, UPDATE, DELETE on all tables and USAGE on all sequences of the schema",
)
_READ_ONLY: Cause = (LedgerError, "the ledger is read-only", "Connect to the primary server")
_OCCUPIED: Cause = (
    LedgerError,
    "the database has tables of these names that do not belong to a ledger",
    "Give the ledger a database of its own",
)

_POOR: Cause = (
    LedgerError,
    "the database lacks memory or something else that it needs",
    "Its log says what; give it more",
)
_STOPPED: Cause = (
    LedgerError,
    "the database stops statements of the ledger",
    "Raise its limits for the user of the ledger, such as statement_timeout",
)
_CROWDED: Cause = (LedgerError, "the database has no free connection", "Let its server take more connections")
_OTHER_TABLES: Cause = (
    LedgerVersion,
    "the tables are not those of the version that they say",
    "`assetflow database check` says what differs; put back a backup, or rebuild the ledger",
)

_UNWRITABLE: Cause = (LedgerError, "the ledger is read-only", "Make the file and its folder writable")
_DISK: Cause = (LedgerError, "the disk of the ledger gives errors", "Check the disk and the space left on it")
_CLOSED: Cause = (LedgerError, "the ledger cannot be opened", "Check that the file and its folder can be read")
_NO_FILE: Cause = (LedgerError, "the file is not a ledger, or it is damaged", _DAMAGED)
_BROKEN: Cause = (LedgerError, "the ledger is damaged", _DAMAGED)

# SQLite's primary result codes. All that says a value is to blame has another one.
_BY_NUMBER: dict[int, Cause] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_NOTADB: _NO_FILE,
    sqlite3.SQLITE_CORRUPT: _BROKEN,
}
# SQLite has one code for everything that is wrong with a statement.
_OF_A_STATEMENT: tuple[tuple[re.Pattern[str], Cause], ...] = (
    (re.compile("no such table: "), _NONE),
    (re.compile("no such column: |table .* has no column named "), _OTHER_TABLES),
    (re.compile("(table|index) .* already exists|there is already "), _OCCUPIED),
)
# Postgres gives a code, whatever its language, for every error except those before a connection is made.
_BY_CODE: dict[str, Cause] = {
    "40001": _LOCKED,
    "40P01": _LOCKED,
    "55P03": _LOCKED,
    "53100": _FULL,
    "3D000": _NO_DATABASE,
    "42P01": _NONE,
    "42501": _NO_RIGHTS,
    "25006": _READ_ONLY,
    "42P07": _OCCUPIED,
    "42703": _OTHER_TABLES,
    "53300": _CROWDED,
    "57P01": _SILENT,
    "57P02": _SILENT,
    "57P03": _SILENT,
    "57P05": _SILENT,
    "25P03": _SILENT,
    "25P04": _STOPPED,
}
# The classes of codes that say the same throughout.
_BY_CLASS: dict[str, Cause] = {
    "08": _SILENT,
    "28": _NO_ENTRY,
    "40": _LOCKED,
    "53": _POOR,
    "57": _STOPPED,
    "58": _DISK,
    "XX": _BROKEN,
}
# What Postgres and its client say before there is a connection; anything else then means that nobody answers.
_WITHOUT_CONNECTION: tuple[tuple[str, Cause], ...] = (
    ("permission denied for database", _NO_ENTRY),
    ("authentication failed", _NO_ENTRY),
    ("no password supplied", _NO_ENTRY),
    ("pg_hba.conf", _NO_ENTRY),
    ("not permitted to log in", _NO_ENTRY),
    ('role "', _NO_ENTRY),
    ("does not exist", _NO_DATABASE),
    ("too many", _CROWDED),
)


@contextmanager
def explained(place: str) -> Generator[None]:
    """Turn what the database raises inside the block into an error that says what to do.

    Raises:
        LedgerLocked: another process held the ledger for longer than the time limit.
        InvalidEvent, TooLarge: the database cannot hold a value; nothing else is wrong with it.
        StatementRefused: the database gives an error that is not known here, about itself or about a value.
        LedgerError: the database cannot be read or written, for the reason given.
    """
    try:
        yield
    except DBAPIError as error:
        raise _explanation(error, place) from error
    except UnicodeDecodeError as error:
        # Python's driver decodes what SQLite says, also the text of a damaged page.
        raise LedgerError(_BROKEN[1], where=place, fix=_DAMAGED) from error
    except NoFreeConnection as error:
        raise LedgerError(
            "all connections of this process to the database are in use", where=place, fix="Try again"
        ) from error


def _explanation(error: DBAPIError, place: str) -> AssetflowError:
    said, code = str(error.orig).strip(), getattr(error.orig, "sqlstate", None)
    if code is not None and code.startswith("54"):
        return TooLarge(f"a value is too large for the database: {said}", where=place, fix="Shorten names and keys")
    if isinstance(error, DataError | IntegrityError):
        return InvalidEvent(f"the database cannot hold a value: {said}", where=place)
    cause = _cause_on_sqlite(error.orig) if isinstance(error.orig, sqlite3.Error) else _cause_on_postgres(error, code)
    if cause is None:
        return StatementRefused(f"the database refuses: {said}", where=place)
    kind, message, fix = cause
    # For SQLite, the message already says everything.
    return kind(f"{message}: {said.splitlines()[0]}" if "://" in place and said else message, where=place, fix=fix)


def _cause_on_sqlite(error: sqlite3.Error) -> Cause | None:
    number = getattr(error, "sqlite_errorcode", None)
    if number is None:
        return None
    if number != sqlite3.SQLITE_ERROR:
        return _BY_NUMBER.get(number & 0xFF)
    return next((cause for text, cause in _OF_A_STATEMENT if text.match(str(error))), None)


def _cause_on_postgres(error: DBAPIError, code: str | None) -> Cause | None:
    if code is not None:
        return _BY_CODE.get(code) or _BY_CLASS.get(code[:2])
    if not isinstance(error, OperationalError):
        return None
    said = str(error.orig).lower()
    return next((cause for text, cause in _WITHOUT_CONNECTION if text in said), _SILENT)
