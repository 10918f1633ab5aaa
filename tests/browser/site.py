"""The pages in front of a browser, on a ledger of the module's own, with everything that a page has to show."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from assetflow.api.requests import Backend
from assetflow.api.security import Access, Keys
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun, SourceTaskRun
from assetflow.ledger import Ledger
from assetflow.web import create_site
from tests.api.serving import serving
from tests.cli.shop import CUSTOMERS, HOURLY, ORDERS, deploy

EVIL = (
    "<img src=x onerror=document.title='hacked'>{{7*7}}\x1b[31m\u202e</script><script>document.title='hacked'</script>"
)
EVIL_ASSET = Asset("s3://lake/evil", name="evil <b>{{7*7}}</b>", group=EVIL, extra={EVIL: EVIL})
REPORT = Asset("s3://lake/report", name="report", group="marts", extra={"owner": "data team", "db_password": "x"})
START = datetime.now(UTC)


def update(ledger: Ledger, asset: Asset, ago: timedelta, key: str | None = None, **fields: object) -> AssetEvent:
    """One update, so long before the tests began."""
    given = {"origin": Origin("api")} | fields
    event = AssetEvent(uuid4(), asset, START - ago, partition_key=key, **given)  # pyright: ignore[reportArgumentType]
    ledger.writer.events.record([Recording(event.id, (event,))], START - ago)
    return event


def fill(ledger: Ledger) -> None:
    """Assets of every kind: with partitions, with an alias, many, and one whose texts want to be more than text."""
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS, produces=(REPORT,))
    deploy(ledger, "ingest/hourly", Asset("s3://lake/landing", name="landing"), produces=(ORDERS, CUSTOMERS, HOURLY))
    deploy(ledger, "watch/all", REPORT | AssetAlias("anything"))
    run = SourceFlowRun(uuid4(), "calm-fox", flow_name="ingest", deployment_name="hourly")
    origin = Origin("task", SourceTaskRun(uuid4(), "load-a1b"), run)
    for number in range(30, 0, -1):
        update(ledger, ORDERS, timedelta(minutes=number), origin=origin, extra={"rows": number, "api_token": "x"})
    update(ledger, CUSTOMERS, timedelta(minutes=2))
    for hour in (9, 8, 6, 5, 3):
        moment = timedelta(hours=hour)
        update(ledger, HOURLY, moment, (START - moment).strftime("%Y-%m-%dT%H"), origin=origin)
    bad = Origin("task", SourceTaskRun(uuid4(), EVIL), SourceFlowRun(uuid4(), EVIL, flow_name=EVIL))
    update(ledger, EVIL_ASSET, timedelta(minutes=1), EVIL, origin=bad, extra={EVIL: EVIL}, aliases=(EVIL,))
    for number in range(60):
        update(ledger, Asset(f"s3://lake/tables/{number:03}", group="tables"), timedelta(hours=number + 1))


@contextmanager
def running_site(place: Path, key: str = "") -> Iterator[tuple[str, Ledger]]:
    """The address of the pages, and their ledger."""
    with Ledger.open(place, now=START - timedelta(days=2)) as ledger:
        fill(ledger)
        site = create_site(Backend(ledger), Access(Keys(key)))
        with serving(site) as url:
            yield url, ledger
