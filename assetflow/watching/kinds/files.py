"""Files, by fsspec; folders of this machine are also listened to, by watchfiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOENT
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from assetflow.core.json_data import fit_text
from assetflow.core.values.triggers import FileTrigger
from assetflow.core.watchers.files import SeenFile
from assetflow.errors import WatchingFailed

_S3 = frozenset({"s3", "s3a"})
_STORES = _S3 | {"gs", "gcs", "az", "abfs", "abfss"}
_WILD = re.compile(r"[*?\[]")

Facts = Mapping[str, Any]


class FsspecFiles:
    """The files of a trigger, in whatever fsspec opens.

    fsspec's own `glob` takes a folder that cannot be listed for an empty one. Its files would be gone from the cursor,
    and all of them be new when the folder can be listed again. So the folders are listed here. A link to a file is that
    file; links to folders are not followed, wherever they lead.

    Attributes:
        source: where they are, without user and password.
        is_store: True for an object store.
    """

    def __init__(self, filesystem: Any, pattern: str, label: str) -> None:
        protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
        self.source = f"{protocol}://"
        self.is_store = protocol in _STORES
        self._is_s3 = protocol in _S3
        self._filesystem = filesystem
        self._pattern = pattern
        self._label = label
        self._folders: set[Path] = set()
        self._matches = re.compile(cast(Any, import_module("fsspec.utils")).glob_translate(pattern)).match

    def list(self) -> dict[str, SeenFile]:
        """Return the files now, by path. It is called in a thread of its own.

        Raises:
            WatchingFailed: they cannot be listed.
            FileNotFoundError: the folder or bucket that all of them are in does not exist.
        """
        self._filesystem.invalidate_cache()
        self._folders.clear()
        try:
            found = self._find()
            if not found and self._is_s3:
                # A bucket that is missing looks like an empty folder.
                self._check_bucket(self._pattern.partition("/")[0])
        except (WatchingFailed, FileNotFoundError):
            raise
        except Exception as error:
            raise WatchingFailed(
                f"the files cannot be listed: {str(error) or type(error).__name__}",
                where=self._label,
                fix="Check that the folder or bucket is there, and that the process that watches may list it",
            ) from error
        return found

    @property
    def folders(self) -> Set[Path]:
        """The folders of this machine that the last list is of."""
        return frozenset(self._folders if self.source == "file://" else ())

    def _check_bucket(self, bucket: str) -> None:
        try:
            self._filesystem.info(bucket)
        except FileNotFoundError as error:
            raise FileNotFoundError(ENOENT, "there is no such bucket", bucket) from error

    def _find(self) -> dict[str, SeenFile]:
        wild = _WILD.search(self._pattern)
        root = self._pattern[: wild.start() if wild else None].rpartition("/")[0] or "/"
        if not self.is_store and not self._filesystem.isdir(root):
            raise FileNotFoundError(ENOENT, "there is no such folder", root)
        if wild is None:
            found = self._file(root)
        else:
            depth = None if "**" in self._pattern else self._pattern[len(root) + 1 :].count("/")
            found = self._below(root, depth)
        # A name may be bytes that are not text.
        return {
            fit_text(facts["name"]): _seen(facts)
            for facts in map(self._linked, found)
            if facts["type"] == "file" and self._matches(facts["name"])
        }

    def _linked(self, facts: Facts) -> Facts:
        """Return the facts of what a link leads to."""
        if facts.get("islink"):
            with suppress(OSError):
                return self._filesystem.info(facts["name"])
        return facts

    def _file(self, folder: str) -> list[Facts]:
        """Return the one file of a pattern without wildcards."""
        self._folders.add(Path(folder))
        try:
            facts = self._filesystem.info(self._pattern)
        except FileNotFoundError:
            return []
        if facts["type"] == "directory":
            raise WatchingFailed("the path is a folder", where=self._label, fix="Write `/*` behind it")
        return [facts]

    def _below(self, folder: str, depth: int | None) -> Iterator[Facts]:
        """Yield the files in a folder, and those in the folders below it as deep as the pattern goes."""
        try:
            if depth is None and self.is_store:
                # A store lists all that is below at once.
                yield from self._filesystem.find(folder, detail=True).values()
                return
            found = cast("list[Facts]", self._filesystem.ls(folder, detail=True))
        except FileNotFoundError:
            return
        self._folders.add(Path(folder))
        for facts in found:
            if facts["type"] != "directory":
                yield facts
            elif depth != 0 and facts["name"].rstrip("/") != folder:
                yield from self._below(facts["name"].rstrip("/"), None if depth is None else depth - 1)


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
            fix='pip install "assetflow[files]" for folders of this machine; [s3], [gcs] or [azure] for object stores',
        ) from error
    return FsspecFiles(filesystem, pattern, trigger.describe())


def _seen(facts: Facts) -> SeenFile:
    modified = facts.get("mtime", facts.get("LastModified", facts.get("last_modified", facts.get("updated"))))
    version = facts.get("ETag") or facts.get("etag") or facts.get("generation") or facts.get("destination") or ""
    return SeenFile(int(facts.get("size") or 0), _moment(modified), str(version).strip('"'))


def _moment(value: object) -> str:
    if isinstance(value, int | float):
        value = datetime.fromtimestamp(value, UTC)
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value or "")
