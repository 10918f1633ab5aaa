"""Iceberg tables, by pyiceberg: their metadata are read, never the data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

from assetflow.core.values.addresses import with_variables
from assetflow.core.values.table_triggers import IcebergTableTrigger
from assetflow.core.watchers.table_changes import Found, Snapshot, Table, cursor_at, first, since
from assetflow.errors import WatchingFailed
from assetflow.watching.looks import Looks


class IcebergTable:
    """An Iceberg table in its catalog; see `Polled`.

    Raises:
        WatchingFailed: pyiceberg is missing, or does not know the catalog.
    """

    def __init__(self, trigger: IcebergTableTrigger, looks: Looks) -> None:
        self.source = f"iceberg {trigger.catalog} {trigger.table}"
        self.label = trigger.describe()
        self._table = trigger.table
        self._looks = looks
        properties = {name: with_variables(value, os.environ) for name, value in trigger.properties.items()}
        try:
            self._exceptions = cast(Any, import_module("pyiceberg.exceptions"))
            self._catalog = cast(Any, import_module("pyiceberg.catalog")).load_catalog(trigger.catalog, **properties)
        except ImportError as error:
            raise WatchingFailed(
                f"pyiceberg is not installed, or what it needs for this catalog: {error}",
                where=self.label,
                fix='pip install "assetflow[iceberg]"',
            ) from error
        except Exception as error:
            raise WatchingFailed(f"the catalog cannot be opened: {error}", where=self.label) from error

    async def look(self, cursor: object) -> Found:
        """Return the snapshots after that of the cursor."""
        return await self._looks.take(partial(self._look, cast("Mapping[str, Any] | None", cursor)))

    def _look(self, cursor: Mapping[str, Any] | None) -> Found:
        try:
            table = _read(self._catalog.load_table(self._table).metadata)
        except (self._exceptions.NoSuchTableError, self._exceptions.NoSuchNamespaceError) as error:
            if cursor is None:
                # The next look, at once, fails too, and says so; when the table is there, its first snapshot is new.
                return Found((), cursor_at(None), is_all=False)
            raise WatchingFailed(str(error), where=self.label, fix="Check the name of the table") from error
        except Exception as error:
            raise WatchingFailed(f"the table cannot be read: {error}", where=self.label) from error
        return first(table) if cursor is None else since(table, cursor["snapshot"])


def _read(metadata: Any) -> Table:
    snapshots = [
        Snapshot(
            each.snapshot_id,
            each.parent_snapshot_id,
            each.timestamp_ms,
            each.summary.operation.value if each.summary else "",
            dict(each.summary.additional_properties) if each.summary else {},
        )
        for each in metadata.snapshots
    ]
    current = metadata.current_snapshot_id
    return Table(str(metadata.table_uuid), snapshots, None if current in (None, -1) else current)
