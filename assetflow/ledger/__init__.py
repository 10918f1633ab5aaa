"""The ledger: durable state in SQLite or Postgres, one writer, one reader."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assetflow.ledger.book import LedgerBook
    from assetflow.ledger.lease import Holder, Lease
    from assetflow.ledger.ledger import Ledger
    from assetflow.ledger.reader import Reader
    from assetflow.ledger.writer import Writer

__all__ = ["Holder", "Lease", "Ledger", "LedgerBook", "Reader", "Writer"]

_HOMES = {
    "Holder": "lease",
    "Lease": "lease",
    "Ledger": "ledger",
    "LedgerBook": "book",
    "Reader": "reader",
    "Writer": "writer",
}


def __getattr__(name: str) -> object:
    # SQLAlchemy takes half a second to import: only who uses the ledger waits for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
