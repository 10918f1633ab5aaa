from uuid import uuid4

from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update
from tests.web.conftest import Site


def test_names_groups_flows_runs_and_ids_are_found(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS)
    (decision,) = update(ledger, ORDERS, 1)
    update(ledger, CUSTOMERS, 2)
    run = uuid4()
    assert f"/decisions/{decision.id}" in site.page(f"/search?q={str(decision.id)[:8]}").links
    ledger.writer.decisions.launched(decision.id, run, NOON)
    assert "/asset?asset=s3%3A%2F%2Flake%2Forders" in site.page("/search?q=order").links
    assert "/asset?asset=s3%3A%2F%2Flake%2Fcustomers" in site.page("/search?q=shop").links
    assert "/consumers/report/nightly" in site.page("/search?q=NIGHT").links
    for text in (str(run), str(run)[:8], str(decision.id)):
        assert f"/runs/{run}" in site.page(f"/search?q={text}").links
    assert f"/events/{event_id(2)}" in site.page(f"/search?q={event_id(2)}").links
    name = f"orders-{str(decision.id)[:6]}"
    page = site.page(f"/search?q={name}")
    assert f"/runs/{run}" in page.links
    assert f"run {name} report/nightly" in page.text
    assert f"/runs/{run}" not in site.page(f"/search?q=customers-{str(decision.id)[:6]}").links
    assert "/runs?failed=true&day=today" in site.page("/search?q=failed").links
    assert "/consumers?show=inactive" in site.page("/search?q=Paused").links
    assert f"/runs/{run}" in site.page(f"/search?q={str(decision.id)[:6]}").links
