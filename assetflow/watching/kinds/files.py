"""Files, by fsspec; folders of this machine are also listened to, by watchfiles."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from assetflow.core.watchers.files import SeenFile
from assetflow.core.watchers.triggers import FileTrigger
from assetflow.errors import WatchingFailed

_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
_WILD = frozenset("*?[")


class FsspecFiles:
    """The files of a trigger, in whatever fsspec opens; see `Files`."""

    def __init__(self, filesystem: Any, pattern: str) -> None:
        protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
        self.source = f"{protocol}://"
        self.is_store = protocol in _STORES
        self._filesystem = filesystem
        self._pattern = pattern

    async def list(self) -> dict[str, SeenFile]:
        """Return the files now, by path."""
        return await asyncio.to_thread(self._list)

    def _list(self) -> dict[str, SeenFile]:
        self._filesystem.invalidate_cache()
        found = cast("dict[str, Mapping[str, Any]]", self._filesystem.glob(self._pattern, detail=True))
        return {path: _seen(facts) for path, facts in found.items() if facts.get("type") == "file"}


def open_files(trigger: FileTrigger, path: str) -> FsspecFiles:
    """Open the files of a trigger.

    Parameters:
        path: the trigger's path, with the values of its variables.

    Raises:
        WatchingFailed: fsspec, or what it needs for this scheme, is missing.
    """
    try:
        filesystem, pattern = cast(Any, import_module("fsspec.core")).url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise WatchingFailed(
            f"fsspec cannot open it: {error}",
            where=trigger.describe(),
            fix='pip install "assetflow[files]", and s3fs, gcsfs or adlfs for an object store',
        ) from error
    return FsspecFiles(filesystem, pattern)


def local_folder(path: str) -> Path | None:
    """Return the folder of this machine in which all files of a path are; `None` if they are elsewhere."""
    plain = path.removeprefix("file://")
    if "://" in plain:
        return None
    parts = Path(plain).parts
    fixed = next((number for number, part in enumerate(parts) if _WILD & set(part)), len(parts) - 1)
    return Path(*parts[:fixed])


def _seen(facts: Mapping[str, Any]) -> SeenFile:
    modified = facts.get("mtime", facts.get("LastModified", facts.get("last_modified", facts.get("updated"))))
    version = facts.get("ETag") or facts.get("etag") or facts.get("generation") or ""
    return SeenFile(int(facts.get("size") or 0), _moment(modified), str(version).strip('"'))


def _moment(value: object) -> str:
    if isinstance(value, int | float):
        value = datetime.fromtimestamp(value, UTC)
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value or "")
