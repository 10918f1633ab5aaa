"""The trigger of a query in a database: a changed value is an update. Contract 10.4."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import ClassVar

from assetflow.core.values.addresses import Address, PrefectBlock, address_to_json, check_address, without_user
from assetflow.core.watchers.options import AnyScheme, Start, changed_fields, check_every, check_start
from assetflow.errors import InvalidWatcher

_SHOWN = 80


@dataclass(frozen=True)
class SQLTrigger:
    """The value of a query; when it changes, that is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import SQLTrigger
    >>> newest = SQLTrigger("postgresql+psycopg://me:${PASSWORD}@db/shop", "select max(updated_at) from orders")
    >>> orders = Asset("postgres://db/shop/public/orders", watchers=[AssetWatcher("orders-in-the-shop", newest)])

    The update has the `value` and the value `before` in its extra. Changes between two looks are one update. The
    transaction is rolled back: the query changes nothing. Contract 10.4.

    Parameters:
        url: the database, as SQLAlchemy writes it, with its driver, which has to be installed. A password in it is
            refused: write `"${SHOP_URL}"`, a variable of the process that watches, or `block(...)`.
        query: a query whose first row is the value; of several columns, the value is a list.
        every: the time between two looks, from one second to a day.
        start: "known", or "existing" to record the value that is there when the watcher is new.

    Raises:
        InvalidWatcher: the address has a password or no scheme, the query is blank, or another option cannot work.
    """

    url: Address
    query: str
    _: KW_ONLY
    every: timedelta = timedelta(seconds=30)
    start: Start = "known"
    kind: ClassVar[str] = "sql"

    def __post_init__(self) -> None:
        check_address(
            self.url, AnyScheme(), known="the databases of SQLAlchemy: postgresql+psycopg://, mysql://, sqlite://"
        )
        if not isinstance(self.query, str) or not self.query.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidWatcher(f"query is {self.query!r}", fix='Write "select max(updated_at) from orders"')
        check_every(self.every)
        check_start(self.start)

    @property
    def place(self) -> str:
        """The database with the query."""
        return f"{self.url} {self.query}"

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        written = {"url": address_to_json(self.url), "every": self.every.total_seconds()}
        return {"kind": self.kind, **changed_fields(self, **written)}

    def describe(self) -> str:
        """Return the trigger in words: "select max(updated_at) from orders of postgresql+psycopg://db/shop"."""
        url = str(self.url) if isinstance(self.url, PrefectBlock) else without_user(self.url)
        query = " ".join(self.query.split())
        return f"{query if len(query) <= _SHOWN else query[: _SHOWN - 1] + '…'} of {url}"
