"""The partitions of assets, by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, case, exists, func, select

from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import ASSET, EVENT

_KEY = EVENT.c.partition_key


@dataclass(frozen=True)
class PartitionRecord:
    """A partition of an asset: how many events it has, and its newest one."""

    key: str
    events: int
    last_event: int
    last_time: datetime


class PartitionReader:
    """Reads partitions. All methods raise `LedgerError` if the ledger cannot be read.

    Keys are ordered as texts.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def page(self, uri: str, *, after: str = "", limit: int = 100) -> list[PartitionRecord]:
        """Return the partitions of an asset by key, from the first key after `after` on."""
        totals = (
            select(_KEY, func.count().label("count"), func.max(EVENT.c.sequence).label("newest"))
            .where(EVENT.c.uri == uri, after < _KEY)
            .group_by(_KEY)
            .order_by(_KEY)
            .limit(limit)
            .subquery()
        )
        query = select(totals, EVENT.c.occurred).join(EVENT, EVENT.c.sequence == totals.c.newest)
        with self._connect() as connection:
            return [PartitionRecord(*row) for row in connection.execute(query.order_by(totals.c.partition_key))]

    def having(self, key: str, *, limit: int) -> list[str]:
        """Return the URIs of assets with an event of this partition key, in the order of the URIs."""
        # The index begins with the URI, so it is asked for each asset.
        has_key = exists(
            select(EVENT.c.sequence).where(EVENT.c.uri == ASSET.c.uri, EVENT.c.partition_key == bindparam("key"))
        )
        query = select(ASSET.c.uri).where(has_key).order_by(ASSET.c.uri).limit(limit)
        with self._connect() as connection:
            return list(connection.scalars(query, {"key": key}))

    def keys(
        self,
        uri: str,
        *,
        since: str = "",
        after: str = "",
        until: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[str]:
        """Return the partition keys of an asset: from `since`, or after `after`, up to and including `until`."""
        query = select(_KEY).where(EVENT.c.uri == uri, after < _KEY, since <= _KEY).distinct()
        if until is not None:
            query = query.where(until >= _KEY)
        with self._connect() as connection:
            found = connection.scalars(query.order_by(_KEY.desc() if newest_first else _KEY).limit(limit)).all()
        return [each for each in found if each is not None]

    def count(self, uri: str) -> int:
        """Return the number of partition keys of an asset."""
        query = select(func.count(_KEY.distinct())).where(EVENT.c.uri == uri, _KEY.is_not(None))
        with self._connect() as connection:
            return connection.execute(query).scalar_one()

    def counts_from(self, uri: str, bounds: Sequence[str]) -> list[int]:
        """Return the number of keys between each two neighbours of `bounds`, two or more, and from the last one on."""
        keys = select(_KEY).where(EVENT.c.uri == uri, bounds[0] <= _KEY).distinct()
        key = keys.subquery().c.partition_key
        number = case(*((key < bound, number) for number, bound in enumerate(bounds[1:])), else_=len(bounds) - 1)
        place = select(number.label("place")).subquery().c.place
        with self._connect() as connection:
            rows = connection.execute(select(place, func.count()).group_by(place))
            found = {row[0]: row[1] for row in rows}
        return [found.get(number, 0) for number in range(len(bounds))]
