"""Updates by hand: every way in checks the same, and records the same."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import assetflow
from assetflow.core.values.events import EXTRA_BYTES
from assetflow.errors import AssetflowError
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import ORDERS, deploy
from tests.web.conftest import Site

Way = Callable[[str, str], str]


@pytest.fixture
def ways(ledger: Ledger, call: Call, site: Site) -> dict[str, Way]:
    """Each way to tell of an update of asset 1, with an extra as JSON and a key; it returns what was refused."""
    deploy(ledger, "report/shop", ORDERS)

    def cli(extra: str, key: str) -> str:
        return call("emit", ORDERS.uri, "--extra", extra, "--key", key).err

    def own(extra: str, key: str) -> str:
        body = {"events": [{"uri": ORDERS.uri, "extra": json.loads(extra), "partition_key": key}]}
        (item,) = site.post("/api/v1/events", json=body).json()["items"]
        return item.get("error", "")

    def airflows(extra: str, key: str) -> str:
        body = {"asset_id": 1, "extra": json.loads(extra), "partition_key": key}
        return site.post("/api/v2/assets/events", json=body).json().get("detail", "")

    def page(extra: str, key: str) -> str:
        fields: dict[str, Any] = {"asset": ORDERS.uri, "extra": extra, "partition_key": key}
        address = f"/asset/events?asset={ORDERS.uri}"
        return site.submit("/asset/events", address, "/asset/events", **fields).text

    def python(extra: str, key: str) -> str:
        with pytest.raises(AssetflowError) as refused:
            assetflow.emit(ORDERS.uri, json.loads(extra), partition_key=key)
        return str(refused.value)

    return {"cli": cli, "v1": own, "v2": airflows, "page": page, "python": python}


@pytest.mark.parametrize("way", ["cli", "v1", "v2", "page", "python"])
@pytest.mark.parametrize(
    ("extra", "key", "words"),
    [
        ('{"rows": 9223372036854775808}', "a", "xtra.rows is an integer beyond 64 bits"),
        ('{"rows": 1}', " ", "he partition key is blank"),
        (json.dumps({"rows": "x" * EXTRA_BYTES}), "a", "he extra has 65547 bytes, the limit is 65536"),
    ],
)
def test_every_way_refuses_the_same(
    ways: dict[str, Way], ledger: Ledger, way: str, extra: str, key: str, words: str
) -> None:
    assert words in ways[way](extra, key)
    assert ledger.reader.events.count() == 0
