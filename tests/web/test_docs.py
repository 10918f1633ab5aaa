"""`/docs`: every operation of the API, with its parameters and an example that works."""

import json
import shlex

from assetflow.web.docs import operations_of
from tests.web.conftest import Site


def test_every_operation_is_documented_once_and_without_scripts(site: Site) -> None:
    document = site.get("/api/openapi.json").json()
    page = site.page("/docs")
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert {each["id"] for each in page.named("details")} == set(ids)
    assert len(set(ids)) == len(ids)
    assert not [each for each in ids if "api_v" in each]
    assert "curl http://127.0.0.1:4300/api/v1/events" in page.text
    assert "/docs" in site.page("/").links
    assert {f"#{each['id']}" for each in page.named("h3")} <= set(page.links)
    assert page.text.count("Record updates. All valid ones become one recording") == 1


def test_the_examples_can_be_sent(site: Site) -> None:
    document = site.get("/api/openapi.json").json()
    found = {each.id: each for each in operations_of(document)}
    for name in ("record_events", "list_events", "list_assets", "count_events", "find_known_events"):
        command = shlex.split(found[name].curl)
        address = next(each for each in command if each.startswith("http://127.0.0.1:4300"))
        body = json.loads(found[name].body) if found[name].body else None
        answer = site.request(found[name].method, address.removeprefix("http://127.0.0.1:4300"), json=body)
        assert answer.status_code == 200, (name, answer.text)
