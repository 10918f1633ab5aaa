"""Pages ask the ledger a fixed number of questions, however much it holds."""

from __future__ import annotations

import pytest

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.api.test_scale import statements
from tests.cli.shop import deploy, event_id, update
from tests.web.conftest import Site

HUB = Asset("s3://lake/hub", name="hub")
PAGES = {
    "/": 49,
    "/assets": 19,
    "/assets?search=lake&sort=updated": 19,
    "/asset?asset=hub": 24,
    "/asset/partitions?asset=hub": 26,
    f"/events/{event_id(0)}": 12,
}


@pytest.mark.parametrize("path", PAGES)
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
    assert counts[0] == counts[1] <= PAGES[path]
