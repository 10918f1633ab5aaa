"""What a database says when it cannot go on, in words that tell what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from assetflow.errors import LedgerError, LedgerLocked

_DAMAGED = "Move it away and rebuild it from what Prefect kept: `assetflow evaluator start --take-over --since DATE`"
_CAUSES: tuple[tuple[str, type[LedgerError], str, str], ...] = (
    ("database is locked", LedgerLocked, "another process holds the ledger", "Stop the process that holds it open"),
    ("lock timeout", LedgerLocked, "another process holds the ledger", "Stop the process that holds it open"),
    ("readonly database", LedgerError, "the ledger is read-only", "Make the file and its folder writable"),
    ("read-only transaction", LedgerError, "the ledger is read-only", "Connect to the primary server"),
    ("file is not a database", LedgerError, "the file is no ledger, or it is damaged", _DAMAGED),
    ("malformed", LedgerError, "the ledger is damaged", _DAMAGED),
    ("disk is full", LedgerError, "the disk of the ledger is full", "Free some space; nothing was half-written"),
    ("no space left", LedgerError, "the disk of the ledger is full", "Free some space; nothing was half-written"),
    ("disk i/o error", LedgerError, "the disk of the ledger gives errors", "Check the disk and the space left on it"),
    ("unable to open", LedgerError, "the ledger cannot be opened", "Check that the file and its folder can be read"),
    ("no such table", LedgerError, "the database holds no ledger", "Check the address, or start the evaluator once"),
    ("does not exist", LedgerError, "the database holds no ledger", "Check the address, or start the evaluator once"),
    ("connection", LedgerError, "the database does not answer", "Check that it runs, and its address"),
)


@contextmanager
def explained(place: str) -> Generator[None]:
    """Turn what the database raises inside into an error that says what to do.

    Raises:
        LedgerLocked: another process held the ledger for longer than the time limit.
        LedgerError: it cannot be read or written, for the reason given.
    """
    try:
        yield
    except DBAPIError as error:
        said = str(error.orig)
        for text, kind, message, fix in _CAUSES:
            if text in said.lower():
                raise kind(message, where=place, fix=fix) from error
        raise LedgerError(f"the database refuses: {said}", where=place) from error
