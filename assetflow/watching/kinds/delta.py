"""Delta tables, by deltalake: their log is read commit by commit, and never the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, partial
from importlib import import_module
from typing import Any, cast

from assetflow.core.values.addresses import without_user
from assetflow.core.values.table_triggers import DeltaTableTrigger
from assetflow.core.watchers.table_changes import Change, Found, existing, gap, read_commit
from assetflow.errors import WatchingFailed
from assetflow.watching.looks import Looks

# Versions that are recorded together at most.
AT_ONCE = 100
NO_VERSION = -1

# The cursor: the version, and the size and the time of its commit in the log, `None` if that was cut off.
Cursor = Mapping[str, Any]


class DeltaLog:
    """The log of a Delta table; see `Polled`."""

    def __init__(self, trigger: DeltaTableTrigger, uri: str, looks: Looks | None = None) -> None:
        self.source = f"delta {without_user(uri).rstrip('/')}"
        self.label = trigger.describe()
        self._uri = uri
        self._looks = looks or Looks()
        self._deltalake = import_deltalake(self.label)
        self._file = cast(Any, import_module("pyarrow.fs")).FileType.File

    async def look(self, cursor: object) -> Found:
        """Return the versions after that of the cursor."""
        return await self._looks.take(partial(self._look, cast("Cursor | None", cursor)))

    def _look(self, cursor: Cursor | None) -> Found:
        try:
            return self._first() if cursor is None else self._next(cursor)
        except self._deltalake.exceptions.TableNotFoundError as error:
            raise WatchingFailed(f"there is no Delta table: {_words(error)}", where=self.label) from error
        except (OSError, ValueError, self._deltalake.exceptions.DeltaError) as error:
            raise WatchingFailed(f"the log of the table cannot be read: {_words(error)}", where=self.label) from error

    def _first(self) -> Found:
        try:
            version, table = self._latest()
        except self._deltalake.exceptions.TableNotFoundError:
            # The next look, at once, fails too, and says so; when the table is there, its first version is new.
            return Found((), {"version": NO_VERSION, "commit": None}, is_all=False)
        return Found((existing(version, table),), self._cursor(version))

    def _next(self, cursor: Cursor) -> Found:
        version, commit = cast(int, cursor["version"]), self._commit(cursor["version"])
        if commit is not None and cursor["commit"] not in (None, commit):
            # The table was dropped and made anew.
            return self._catch_up(cursor)
        changes: list[Change] = []
        last = version
        while last < version + AT_ONCE and (text := self._text(last + 1)) is not None:
            last += 1
            changes += [change] if (change := read_commit(last, text)) else []
        if last > version:
            return Found(changes, self._cursor(last), is_all=last < version + AT_ONCE)
        return self._catch_up(cursor) if commit is None else Found((), cursor)

    def _catch_up(self, cursor: Cursor) -> Found:
        """Return one update if versions are missing between that of the cursor and the latest one. Contract 10.6."""
        version, table = self._latest()
        now = self._cursor(version)
        is_known = version == cursor["version"] and now["commit"] in (None, cursor["commit"])
        return Found(() if is_known else (gap(version, table),), now)

    def _latest(self) -> tuple[int, str]:
        """Return the latest version and the id of the table."""
        table = self._deltalake.DeltaTable(self._uri)
        return table.version(), str(table.metadata().id)

    def _cursor(self, version: int) -> Cursor:
        return {"version": version, "commit": self._commit(version)}

    @cached_property
    def _store(self) -> Any:
        return self._deltalake.fs.DeltaStorageHandler(self._uri)

    def _commit(self, version: int) -> list[object] | None:
        """Return size and time of a commit; `None` if the log does not have it."""
        (found,) = self._store.get_file_info([_name(version)])
        return [found.size, found.mtime_ns] if found.type == self._file else None

    def _text(self, version: int) -> bytes | None:
        try:
            return self._store.open_input_file(_name(version)).read()
        except FileNotFoundError:
            return None


def _name(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _words(error: Exception) -> str:
    """Return what deltalake says, in one line and without colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|↳", "", str(error)).split())


def import_deltalake(where: str) -> Any:
    """Return deltalake with what is used of it.

    Raises:
        WatchingFailed: it is missing.
    """
    try:
        for name in ("deltalake.exceptions", "deltalake.fs", "pyarrow.fs"):
            import_module(name)
    except ImportError as error:
        raise WatchingFailed("deltalake is not installed", where=where, fix='pip install "assetflow[delta]"') from error
    return import_module("deltalake")
