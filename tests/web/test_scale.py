"""Pages and lists ask the ledger a fixed number of questions, however much it holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.cli.shop import deploy, event_id, update
from tests.web.conftest import Site

HUB = Asset("s3://lake/hub", name="hub")
MOST = {
    "/": 49,
    "/assets": 19,
    "/assets?search=lake&sort=updated": 19,
    "/asset?asset=hub": 24,
    "/asset/partitions?asset=hub": 26,
    f"/events/{event_id(0)}": 12,
    "/graph?focus=hub": 60,
    "/api/v1/assets": 7,
    "/api/v1/assets?search=lake": 7,
    "/api/v1/events": 1,
    "/api/v1/consumers": 5,
    "/api/v1/decisions": 1,
    "/api/v1/lineage?focus=hub&depth=2": 18,
    "/api/v2/assets?limit=100": 7,
    "/api/v2/assets/events?limit=100": 4,
    "/api/v2/assets/aliases": 3,
    "/api/v2/assets/3/queuedEvents": 5,
    "/api/v2/dags/flow-3.2/assets/queuedEvents": 4,
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


@pytest.mark.parametrize("path", MOST)
def test_the_number_of_statements_does_not_grow(site: Site, ledger: Ledger, path: str) -> None:
    counts: list[int] = []
    # The event that is looked at keeps one consumer.
    deploy(ledger, "only/one", HUB & Asset("s3://lake/never"))
    update(ledger, HUB, 0, "2026-01-01")
    for size in (3, 30):
        for number in range(size):
            asset = Asset(f"s3://lake/{size}/{number}")
            deploy(ledger, f"flow-{size}/{number}", asset & HUB, produces=(HUB,))
            update(ledger, asset, size * 100 + number)
            update(ledger, HUB, size * 1000 + number, f"2026-01-{number + 1:02}")
        with statements() as asked:
            assert site.get(path).status_code == 200
        counts.append(len([each for each in asked if each.startswith("SELECT")]))
    assert counts[0] == counts[1] <= MOST[path]
