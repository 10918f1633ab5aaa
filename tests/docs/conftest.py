"""What the tests of pages have: Spark, and the pieces of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.docs.pieces import Piece, imported, pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def spark(shared_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    monkeypatch.setenv("ASSETFLOW_SPARK_MASTER", "local[2]")
    return shared_spark


@pytest.fixture
def piece(tmp_path: Path) -> Iterator[Piece]:
    """Imports a piece of a page, with the names in `given`; `places` that it writes to lie in the test's folder."""

    def make(page: str, number: int = 0, *, places: tuple[str, ...] = (), **given: object) -> ModuleType:
        text = pieces(page)[number]
        for place in places:
            scheme = "" if place.startswith("/") else "file://"
            text = text.replace(place, f"{scheme}{tmp_path}/{place.strip('/').rpartition('/')[2]}/")
        return opened.enter_context(imported(text, tmp_path, **given))

    with ExitStack() as opened:
        yield make
