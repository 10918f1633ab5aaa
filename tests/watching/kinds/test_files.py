"""Files that appear or change become updates, each once (10.4, 10.7)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow.watchers import FileTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import Direct, updates, watch, watching

NEVER = timedelta(days=1)


def trigger(folder: Path, **options: Any) -> FileTrigger:
    return FileTrigger(f"{folder}/**/*.json", every=options.pop("every", timedelta(seconds=1)), **options)


def paths(direct: Direct) -> list[str]:
    return [Path(str(event.extra["path"])).name for event in updates(direct.ledger)]


def begun(direct: Direct) -> Callable[[], bool]:
    return lambda: direct.watcher.begun


async def test_rule_10_4_what_is_there_is_known_and_what_comes_is_an_update(direct: Direct, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "old.json").write_text("{}")
    watch(direct.ledger, trigger(folder))
    async with watching(direct):
        await until_async(begun(direct))
        (folder / "new.json").write_text("{}")
        await until_async(lambda: paths(direct) == ["new.json"])
    # While nobody watches, files come, change and go.
    (folder / "later.json").write_text("{}")
    (folder / "old.json").write_text("changed")
    (folder / "new.json").unlink()
    async with watching(direct):
        await until_async(lambda: sorted(paths(direct)) == ["later.json", "new.json", "old.json"])
        await until_async(lambda: len(direct.ledger.reader.watchers.items("w")) == 2)


@pytest.mark.parametrize("step", ["record", "recorded"])
async def test_rule_10_4_a_crash_neither_loses_nor_doubles(direct: Direct, tmp_path: Path, step: str) -> None:
    watch(direct.ledger, trigger(tmp_path, start="existing"))
    (tmp_path / "a.json").write_text("{}")
    direct.fails.add(step)
    async with watching(direct):
        await until_async(lambda: paths(direct) == ["a.json"] and not direct.fails)
        (tmp_path / "b.json").write_text("{}")
        await until_async(lambda: paths(direct) == ["a.json", "b.json"])


async def test_a_local_folder_is_heard_long_before_the_next_look(direct: Direct, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    watch(direct.ledger, trigger(folder, every=NEVER))
    async with watching(direct):
        await until_async(begun(direct))
        number = 0

        def written() -> bool:
            # The listener needs a moment to begin.
            nonlocal number
            number += 1
            (folder / f"{number}.json").write_text("{}")
            return bool(updates(direct.ledger))

        await until_async(written)
