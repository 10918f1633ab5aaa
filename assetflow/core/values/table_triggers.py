"""The triggers of Delta and Iceberg tables: a new version is an update. Contract 10.4, 10.6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import ClassVar

from assetflow.core.values.addresses import (
    Address,
    PrefectBlock,
    check_address,
    is_variable,
    looks_secret,
    refuse_password,
    without_user,
)
from assetflow.core.values.triggers import Start, Trigger, check_location, check_looks
from assetflow.errors import InvalidWatcher


@dataclass(frozen=True)
class DeltaTableTrigger(Trigger):
    """New versions of a Delta table, each of which is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import DeltaTableTrigger
    >>> table = DeltaTableTrigger("s3://lake/orders")
    >>> orders = Asset("s3://lake/orders", watchers=[AssetWatcher("orders-table", table)])

    Whoever writes the table, each version that changes rows is an update, with `version`, `operation` and the numbers
    of rows in its extra; versions that change none (OPTIMIZE, VACUUM) are not. Contract 10.6.

    Parameters:
        uri: the table: an absolute path, or a URL that deltalake opens, such as `s3://lake/orders`. Credentials are
            those of the process that watches, such as `AWS_ACCESS_KEY_ID`; a password in the URL is refused.
        every: the time between two looks, from one second to a day.
        start: "known", or "existing" to record the version that is there when the watcher is new.

    Raises:
        InvalidWatcher: the address is not absolute, has a password or leaves its bucket, or another option cannot work.
    """

    uri: str
    _: KW_ONLY
    every: timedelta = timedelta(seconds=30)
    start: Start = "known"
    kind: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        check_location(self.uri, example='"/lake/orders" or "s3://lake/orders"')
        check_looks(self.every, self.start)

    @property
    def place(self) -> str:
        """The table's address."""
        return self.uri

    def describe(self) -> str:
        """Return the trigger in words: "Delta table s3://lake/orders"."""
        return f"Delta table {without_user(self.uri)}"


@dataclass(frozen=True)
class IcebergTableTrigger(Trigger):
    """New snapshots of an Iceberg table, each of which is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import IcebergTableTrigger
    >>> table = IcebergTableTrigger("lake", "shop.orders", properties={"uri": "https://catalog.internal"})
    >>> orders = Asset("iceberg://lake/shop/orders", watchers=[AssetWatcher("orders-table", table)])

    Each snapshot that changes rows is an update, with `version` (its id), `operation` and the numbers of rows in its
    extra; a compaction (`replace`) is not an update. Contract 10.6.

    Parameters:
        catalog: the name of a catalog that pyiceberg knows from `.pyiceberg.yaml` or `PYICEBERG_CATALOG__…`, where the
            process that watches finds them.
        table: the table with its namespaces: "shop.orders".
        properties: properties of the catalog, beside those that pyiceberg knows. A secret among them is refused: write
            `"${CATALOG_TOKEN}"`, a variable of the process that watches.
        every: the time between two looks, from one second to a day.
        start: "known", or "existing" to record the snapshot that is there when the watcher is new.

    Raises:
        InvalidWatcher: a name is blank or has no namespace, a property is a secret, or another option cannot work.
    """

    catalog: str
    table: str
    _: KW_ONLY
    properties: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    every: timedelta = timedelta(seconds=30)
    start: Start = "known"
    kind: ClassVar[str] = "iceberg"

    def __post_init__(self) -> None:
        if not isinstance(self.catalog, str) or not self.catalog.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidWatcher(f"catalog is {self.catalog!r}", fix='Write the name of the catalog: "lake"')
        parts = self.table.split(".") if isinstance(self.table, str) else []  # pyright: ignore[reportUnnecessaryIsInstance]
        if len(parts) < 2 or not all(part.strip() for part in parts):
            raise InvalidWatcher(f"table is {self.table!r}", fix='Write the table with its namespace: "shop.orders"')
        self._check_properties()
        check_looks(self.every, self.start)

    @property
    def place(self) -> str:
        """The catalog with the table."""
        return f"{self.catalog} {self.table} {sorted(self.properties.items())}"

    def describe(self) -> str:
        """Return the trigger in words: "Iceberg table shop.orders of lake"."""
        return f"Iceberg table {self.table} of {self.catalog}"

    def _check_properties(self) -> None:
        for name, value in self.properties.items():
            if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidWatcher(f"the property {name} is {value!r}", fix="Write properties as texts")
            refuse_password(value)
            if looks_secret(name) and not is_variable(value):
                raise InvalidWatcher(
                    f"the property {name} is a secret, which everybody could read who sees the deployment",
                    fix=f'Write it as a variable: {{"{name}": "${{CATALOG_SECRET}}"}}',
                    rule="10.1",
                )


_SHOWN = 80


@dataclass(frozen=True)
class SQLTrigger(Trigger):
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
        check_address(self.url, bool, known="the databases of SQLAlchemy: postgresql+psycopg://, mysql://, sqlite://")
        if not isinstance(self.query, str) or not self.query.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidWatcher(f"query is {self.query!r}", fix='Write "select max(updated_at) from orders"')
        check_looks(self.every, self.start)

    @property
    def place(self) -> str:
        """The database with the query."""
        return f"{self.url} {self.query}"

    def describe(self) -> str:
        """Return the trigger in words: "select max(updated_at) from orders of postgresql+psycopg://db/shop"."""
        url = str(self.url) if isinstance(self.url, PrefectBlock) else without_user(self.url)
        query = " ".join(self.query.split())
        return f"{query if len(query) <= _SHOWN else query[: _SHOWN - 1] + '…'} of {url}"
