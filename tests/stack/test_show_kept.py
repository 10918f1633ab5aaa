"""The demo's tables: the runs of Eager flows stand beside the update that they follow, those of new code alone."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from assetflow.ledger import Ledger
from assetflow.stack.summary import Story, deployed_now, show
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only
from tests.stack.test_summary import run_of


def test_an_eager_run_follows_an_update(ledger: Ledger) -> None:
    place = Place(ledger)
    place.deploy("core/one", kept([RAW], [CORE], code="1"))
    place.deploy("board/one", kept([CORE], [BOARD]))
    board = only(place.run("core/one", only(place.update(RAW)), CORE, code="1"))
    place.run("board/one", board, BOARD)
    place.deploy("core/one", kept([RAW], [CORE], code="2"))
    runs = [run_of(each.id) for each in ledger.reader.decisions.find()]
    story = Story.read(ledger.reader, runs, deployed_now(ledger.reader))
    console = Console(file=StringIO(), width=140)
    summary: dict[str, Any] = story.as_json() | {"held_back": [], "results": {"checks": []}}
    console.print(show(story, summary))

    told: list[str] = console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    table = told[: next(number for number, line in enumerate(told) if "What triggered what" in line)]
    assert [line.split()[0] for line in table if "core/one" in line] == ["#1"]
    assert [line.split()[0] for line in table if "board/one" in line] == ["#2"]
