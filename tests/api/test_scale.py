"""Lists ask the ledger a fixed number of questions, however much it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import deploy, update

LISTS = {
    "/api/v1/assets": 7,
    "/api/v1/assets?search=asset": 7,
    "/api/v1/events": 1,
    "/api/v1/consumers": 5,
    "/api/v1/decisions": 1,
    "/api/v1/lineage?focus=s3://lake/1&depth=2": 18,
    "/api/v2/assets?limit=100": 7,
    "/api/v2/assets/events?limit=100": 4,
    "/api/v2/assets/aliases": 3,
    "/api/v2/assets/1/queuedEvents": 5,
    "/api/v2/dags/both.2/assets/queuedEvents": 4,
}


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that any engine carries out within the block."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", LISTS)
def test_the_number_of_statements_does_not_grow(api: Api, ledger: Ledger, path: str) -> None:
    counts: list[int] = []
    for size in (3, 30):
        for number in range(size - 3 * (size > 3)):
            asset = Asset(f"s3://lake/{size}/{number}" if size > 3 else f"s3://lake/{number}")
            deploy(ledger, f"both/{asset.uri[10:].replace('/', '-')}", asset & Asset("s3://lake/other"))
            update(ledger, asset, size * 100 + number)
        with statements() as asked:
            assert api.get(path).status_code == 200
        counts.append(len([each for each in asked if each.startswith("SELECT")]))
    assert counts[0] == counts[1] <= LISTS[path]
