"""Versions of sources that were seen, by `POST /api/v1/assets/{uri}/observations` (contract 8.2)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from httpx import Client

from assetflow.api.security import Access, Keys
from assetflow.authoring.observing import _told_to_api
from assetflow.authoring.remote import RemoteApi
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import ApiRefused
from assetflow.ledger import Ledger
from tests.api.conftest import MakeApi
from tests.cli.shop import CUSTOMERS, ORDERS, deploy
from tests.ledger.making import NOW

NUMBER = UUID(int=3)
PATH = f"/api/v1/assets/{quote(ORDERS.uri, safe='')}/observations"


def test_rule_8_2_only_items_with_another_version_are_updates(api: Client, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    first = api.post(PATH, json={"items": [{"data_version": "1"}, {"partition_key": "k", "data_version": "1"}]})
    again = api.post(PATH, json={"items": [{"data_version": "2"}, {"partition_key": "k", "data_version": "1"}]})

    assert [len(each.json()["events"]) for each in (first, again)] == [2, 1]
    assert [each["consumer"] for each in first.json()["decisions"]] == ["report/shop"]
    found = [(each.partition_key, each.data_version) for each in ledger.reader.events.find()]
    assert found == [(None, "1"), ("k", "1"), (None, "2")]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {"items": [{}]},
        {"items": [{"data_version": " "}]},
        {"items": [{"data_version": 5}]},
        {"items": [{"data_version": "1", "partition_key": " "}]},
    ],
)
def test_a_wrong_observation_changes_nothing(api: Client, ledger: Ledger, body: dict[str, Any]) -> None:
    assert api.post(PATH, json=body).status_code == 422
    assert ledger.reader.events.find() == []


def test_an_api_key_that_only_reads_leaves_the_observation_to_prefect(
    make_api: MakeApi, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys("all-0123456789abcdef", "read-0123456789abcdef", "emit-0123456789abcdef")
    monkeypatch.setenv("ASSETFLOW_API_URL", str(make_api(Access(keys)).base_url))
    monkeypatch.setenv("ASSETFLOW_API_KEY", keys.read)
    assert not _told_to_api(ORDERS, {None: "1"})
    assert ledger.reader.events.count() == 0
    monkeypatch.setenv("ASSETFLOW_API_KEY", keys.emit)
    assert _told_to_api(ORDERS, {None: "1"})
    assert ledger.reader.events.count() == 1
    monkeypatch.setenv("ASSETFLOW_API_KEY", "wrong")
    with pytest.raises(ApiRefused, match="401"):
        _told_to_api(ORDERS, {None: "2"})


def test_rule_8_2_only_a_source_may_be_observed(api: Client, ledger: Ledger) -> None:
    made = FlowDeclaration(ConsumerOptions(to_schedule(CUSTOMERS)), (ORDERS,), (CUSTOMERS,))
    ledger.writer.consumers.deploy("load/shop", NUMBER, None, declaration_to_text(made), False, False, NOW)
    with RemoteApi(str(api.base_url)) as remote, pytest.raises(ApiRefused, match="Observe sources only"):
        remote.observe(ORDERS, {None: "1"})

    assert ledger.reader.events.find() == []
