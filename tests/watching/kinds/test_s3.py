"""Files in S3 become updates, each once, and a store that cannot be listed loses and doubles nothing (10.4, 10.7)."""

from datetime import timedelta
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from assetflow.watchers import FileTrigger
from tests.environment.waiting import until_async
from tests.watching.brokers import S3Server
from tests.watching.outside import Direct, updates, watch, watching

pytestmark = pytest.mark.long

EVERY = timedelta(seconds=1)


def keys(direct: Direct) -> list[str | None]:
    return [event.partition_key for event in updates(direct.ledger)]


def cursor(direct: Direct) -> set[str]:
    return {path.rpartition("/")[2] for path in direct.ledger.reader.watchers.items("w")}


async def test_rule_10_7_a_file_in_s3_counts_at_the_first_look_and_leaves_the_cursor_when_it_is_gone(
    direct: Direct, s3: S3Server, bucket: str
) -> None:
    trigger = FileTrigger(f"s3://{bucket}/in/date=*/*.json", every=EVERY, partition_key=r"date=(?P<key>[0-9-]+)/")
    s3.put(bucket, **{"in/date=2026-01-01/old.json": "{}", "in/date=2026-01-01/other.csv": "", "old.json": ""})
    watch(direct.ledger, trigger)
    async with watching(direct):
        await until_async(lambda: cursor(direct) == {"old.json"})
        s3.put(bucket, **{"in/date=2026-01-02/new.json": "{}"})
        await until_async(lambda: keys(direct) == ["2026-01-02"])
        # What changes is an update again: it has another etag.
        s3.put(bucket, **{"in/date=2026-01-01/old.json": "[]"})
        await until_async(lambda: keys(direct) == ["2026-01-02", "2026-01-01"])
        s3.remove(bucket, "in/date=2026-01-02/new.json")
        await until_async(lambda: cursor(direct) == {"old.json"})
    assert updates(direct.ledger)[0].extra["path"] == f"{bucket}/in/date=2026-01-02/new.json"
    assert keys(direct) == ["2026-01-02", "2026-01-01"]


async def test_a_variable_does_not_lead_out_of_the_bucket(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", "in/../../others")
    watch(direct.ledger, FileTrigger("s3://shop/${FOLDER}/*.json"))
    async with watching(direct):
        await until_async(lambda: "leaves its folder or bucket" in direct.watcher.error)


async def test_rule_10_7_a_folder_that_cannot_be_listed_is_not_an_empty_one(
    direct: Direct, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, listed = MemoryFileSystem(), MemoryFileSystem.ls
    store.pipe(f"/{name}/day=1/a.json", b"{}")
    watch(direct.ledger, FileTrigger(f"memory://{name}/day=*/*.json", every=EVERY))

    def refuses(self: MemoryFileSystem, path: str, *args: Any, **options: Any) -> object:
        if "day=" in path:
            raise PermissionError("slow down")
        return listed(self, path, *args, **options)

    async with watching(direct):
        await until_async(lambda: cursor(direct) == {"a.json"})
        monkeypatch.setattr(MemoryFileSystem, "ls", refuses)
        await until_async(lambda: "slow down" in direct.watcher.error)
        monkeypatch.setattr(MemoryFileSystem, "ls", listed)
        store.pipe(f"/{name}/day=1/b.json", b"{}")
        await until_async(lambda: cursor(direct) == {"a.json", "b.json"})
    store.rm(f"/{name}", recursive=True)
    # The file that was known is still known.
    assert [event.extra["path"] for event in updates(direct.ledger)] == [f"/{name}/day=1/b.json"]
