"""A stored trigger that cannot be read fails alone: a later version wrote it, or its broker's package is missing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sqlalchemy import update

from assetflow.ledger.sql.tables import WATCHER
from assetflow.watchers import FileTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import Direct, updates, watch, watching


async def test_a_trigger_that_cannot_be_read_fails_alone_until_it_is_deployed_again(
    direct: Direct, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text("{}")
    files = FileTrigger(f"{tmp_path}/*.json", every=timedelta(seconds=1), start="existing")
    for name in ("old", "new"):
        watch(direct.ledger, files, name, f"s3://shop/{name}")
    with direct.ledger.writer.watchers._store.writes() as connection:
        later = {"kind": "queue", "url": "nats://mq", "queue": "q"}
        connection.execute(update(WATCHER).where(WATCHER.c.name == "new").values(trigger=later))
    async with watching(direct):
        await until_async(lambda: [event.uri for event in updates(direct.ledger)] == ["s3://shop/old"])
        new = await until_async(lambda: next((w for w in direct.ledger.reader.watchers.all() if w.error), None))
        assert "'nats' is not known" in new.error
        assert "cannot be read here" in new.trigger.describe()
        watch(direct.ledger, files, "new", "s3://shop/new")
        await until_async(lambda: len(updates(direct.ledger)) == 2)
