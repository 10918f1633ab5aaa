"""The ledger: the durable state of assetflow, in SQLite or Postgres."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assetflow.ledger.lease import Holder, Lease
    from assetflow.ledger.ledger import Ledger
    from assetflow.ledger.read.reader import Reader
    from assetflow.ledger.write.store import UnitOfWork
    from assetflow.ledger.write.writer import Writer

__all__ = ["Holder", "Lease", "Ledger", "Reader", "UnitOfWork", "Writer"]

_HOMES = {
    "Holder": "lease",
    "Lease": "lease",
    "Ledger": "ledger",
    "Reader": "read.reader",
    "UnitOfWork": "write.store",
    "Writer": "write.writer",
}


def __getattr__(name: str) -> object:
    # SQLAlchemy takes half a second to import: only a process that uses the ledger waits for it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
