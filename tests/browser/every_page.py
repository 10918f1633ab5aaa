"""Everything that the pages can show, and the address of every page and dialog: for axe, and for pictures."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from assetflow import FreshnessPolicy
from assetflow.core.partitions import StartOfDayMapper
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.ledger import Ledger
from assetflow.ledger.lease import Holder
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted
from assetflow.operations.installation import Installation
from tests.browser.site import START, update
from tests.cli.shop import CUSTOMERS, HOURLY, ORDERS, ROLLED_UP, deploy
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_kept import Place, kept
from tests.web.test_diff import keep_diff

DAYS = 40
CLICKS, SESSIONS, FUNNEL = (
    Asset(f"s3://lake/web/{name}", name=name, group="web") for name in ("clicks", "sessions", "funnel")
)
PRICES, MARGINS, OFFERS, SHELF = (
    Asset(f"s3://lake/prices/{name}", name=name, group="prices") for name in ("prices", "margins", "offers", "shelf")
)
BOARD = Asset("s3://lake/board", name="board", group="shop")
HUB = Asset("s3://lake/calendar", name="calendar", group="common")
STOCK = Asset("s3://lake/stock", name="stock", group="shop", freshness=FreshnessPolicy(timedelta(hours=6)))


def fill_more(ledger: Ledger) -> None:
    """Add to `site.fill` what is fresh, stale, outdated and missing, late, failed, paused, waiting, and a backfill."""
    place = Place(ledger, START - timedelta(hours=3))
    mapper = StartOfDayMapper(input_format="%Y-%m-%d", output_format="%Y-%m-%d")
    place.deploy("sessions/web", kept([CLICKS], [SESSIONS], mapper=mapper, catchup="none", retries=0))
    place.deploy("funnel/web", kept([SESSIONS], [FUNNEL], mapper=mapper, catchup="none", retries=0))
    keys = [f"{START - timedelta(days=number):%Y-%m-%d}" for number in range(DAYS, 0, -1)]
    for number, key in enumerate(keys):
        (made,) = place.update(CLICKS, key)
        if number % 9 == 5:
            place.end(made, "failed")
        elif number % 9 != 7:
            for below in place.run("sessions/web", made, SESSIONS):
                place.run("funnel/web", below, FUNNEL)
    for key in keys[16:19]:
        for made in place.update(CLICKS, key):
            place.end(made, "cancelled")
    last = BackfillWanted(SESSIONS.uri, keys=tuple(keys[-12:]), down=True)
    planned = backfill.plan(ledger.reader, last)
    backfill.begin(Installation(ledger), last, planned, by="anna", why="a bug in the parser")
    for _ in range(5):
        done = next(each for each, _ in ledger.reader.decisions.waiting(limit=100) if each.kind == "backfill")
        ledger.writer.decisions.launched(done.id, uuid4(), place.later())
        ledger.writer.decisions.ended("Completed", place.later(), decision_id=done.id)

    place.deploy("margins/prices", kept([PRICES], [MARGINS], code="1"))
    place.deploy("offers/prices", kept([MARGINS], [OFFERS]))
    place.deploy("shelf/prices", kept([OFFERS], [SHELF]))
    for first in place.update(PRICES, version="monday"):
        for second in place.run("margins/prices", first, MARGINS):
            place.run("offers/prices", second, OFFERS)
    place.update(PRICES, version="tuesday")

    deploy(ledger, "daily/rollup", ROLLED_UP)
    update(ledger, HOURLY, timedelta(minutes=4), "2026-01-01T05:00:00")
    deploy(ledger, "count/stock", ORDERS, produces=(STOCK,))
    update(ledger, STOCK, timedelta(hours=20))
    for number in range(22):
        deploy(ledger, f"reader-{number:02}/common", HUB)
    paused = deploy(ledger, "halted/shop", ORDERS & CUSTOMERS, while_paused="keep")
    ledger.writer.consumers.switch(paused.id, paused=True, now=START)
    for asset in (CUSTOMERS, ORDERS):
        update(ledger, asset, timedelta(minutes=1))
    waiting = ledger.reader.decisions.waiting(limit=4)
    for decision, _ in waiting[:-1]:
        ledger.writer.decisions.launched(decision.id, uuid4(), START)
    ledger.writer.decisions.undeliverable(waiting[-1][0].id, "Prefect answers 409: no such work pool", START)
    _fail_and_follow(ledger)
    ledger.writer.clock.run(START, START)
    fail(ledger)
    keep_diff(ledger, START)
    ledger.writer.lease.acquire(Holder.this_process(uuid4()), seconds=3600)


def _fail_and_follow(ledger: Ledger) -> None:
    """Add an update that leads to runs which fail, and to others which lead on."""
    names = ["board/shop", "fraud-check/shop", *(f"mail/team-{number:02}" for number in range(12))]
    for name in names:
        deploy(ledger, name, CUSTOMERS, produces=(BOARD,) if name == "board/shop" else ())
    deploy(ledger, "slides/shop", BOARD)
    deploy(ledger, "with-deadline/shop", CUSTOMERS & BOARD & SHELF)
    update(ledger, CUSTOMERS, timedelta(seconds=40))
    for number, name in enumerate(names):
        flow = ledger.reader.consumers.named(name)
        assert flow is not None
        (made,) = ledger.reader.decisions.find(consumer=flow.consumer.id)
        run, end = uuid4(), START - timedelta(seconds=30 - number)
        ledger.writer.decisions.launched(made.id, run, START - timedelta(seconds=39))
        if name == "board/shop":
            source = SourceFlowRun(run, "calm-fox", flow_name="board", deployment_name="shop")
            update(ledger, BOARD, timedelta(seconds=31), origin=Origin("task", flow_run=source), metrics={"rows": 3})
        state, outcome, error = ("Completed", "completed", "")
        if name == "fraud-check/shop":
            state, outcome, error = "Failed", "failed", "model endpoint answers 503 <b>\nat line 7"
        ledger.writer.decisions.ended(state, end, decision_id=made.id)
        of = (0, run, "calm-fox", made.deployment_id, "", None, state, outcome, "decision", made.id)
        ended = EndedRun(*of, START, START - timedelta(seconds=39), end, error, state_at=end)  # type: ignore[arg-type]
        ledger.writer.ended_runs.add([ended], START)


def fail(ledger: Ledger) -> None:
    """Let runs of makers and consumers end well, fail, and crash, over some days."""
    flows = {each.consumer.name: each.consumer.deployment_id for each in ledger.reader.consumers.all()}
    runs: list[EndedRun] = []
    for hour in range(60, 0, -1):
        for name, outcome, error in (
            ("count/stock", "crashed" if hour < 4 else "completed", "Process exited with status code -9 (killed)"),
            ("report/nightly", "failed" if hour % 9 == 3 else "completed", "ValueError: 'n/a' in column price_eur"),
            ("daily/rollup", "failed" if hour == 5 else "cancelled" if hour % 7 == 0 else "completed", "503"),
        ):
            at = START - timedelta(hours=hour)
            key = "2026-01-01" if name == "daily/rollup" else None
            of = replace(ended(flows[name], 0, outcome, key), began=at - timedelta(minutes=4), ended=at, state_at=at)
            runs.append(replace(of, error=error if of.has_failed else ""))
    for number in range(6):
        of = ended(flows[f"mail/team-{number:02}"], 0)
        at = START - timedelta(seconds=number)
        runs.append(replace(of, began=at, ended=at, state_at=at, error="ConnectionRefusedError: smtp.shop:25"))
    ledger.writer.ended_runs.add(runs, START)


def every_page(ledger: Ledger) -> dict[str, str]:
    """Return the address of every page by a name for a file; a dialog is a page with it open."""
    reader = ledger.reader
    run = next(each for each in reader.decisions.find(limit=1000) if each.flow_run_id)
    event = reader.events.find(newest_first=True, limit=1)[0].id
    failed = next(each for each in reader.decisions.find(limit=1000) if each.run_state == "Failed" and each.target_key)
    asset = "/asset?asset=orders"
    return {
        "overview": "/",
        "assets": "/assets",
        "assets-nothing-found": "/assets?search=zzz",
        "asset": asset,
        "asset-partitions": "/asset?asset=funnel",
        "asset-late": "/asset?asset=stock",
        "asset-unknown": "/asset?asset=ordres",
        "partitions": "/asset/partitions?asset=sessions",
        "status": "/asset/status?asset=offers",
        "create-event": "/asset/events?asset=orders",
        "materialize": "/asset/materialize?asset=orders",
        "graph": "/graph",
        "graph-of-one": "/graph?focus=prices&down=5",
        "graph-of-a-hub": "/graph?focus=calendar",
        "graph-unknown": "/graph?focus=ordres",
        "event": f"/events/{event}",
        "consumers": "/consumers",
        "condition": "/consumers/report/nightly/condition",
        "pause-all": "/consumers/switch?search=report&paused=yes",
        "consumer": "/consumers/report/nightly",
        "consumer-paused": "/consumers/halted/shop",
        "consumer-keys": "/consumers/daily/rollup?key=2026-01-01",
        "consumer-eager": "/consumers/offers/prices",
        "consumer-key-failed": f"/consumers/{failed.consumer_name}?key={failed.target_key}",
        "run-now": "/consumers/report/nightly/run",
        "remove": "/consumers/halted/shop/remove",
        "pause": "/consumers/report/nightly/switch",
        "runs": "/runs",
        "runs-failed": "/runs?failed=true",
        "run": f"/runs/{run.flow_run_id}",
        "run-end": f"/runs/{run.flow_run_id}/end",
        "decision": f"/decisions/{run.id}",
        "backfills": "/backfills",
        "backfill-form": "/backfills/new?asset=sessions&down=yes",
        "backfill-refused": "/backfills/new?asset=sessions&start=soon",
        "backfill": "/backfills/1",
        "backfill-stop": "/backfills/1/stop",
        "diff": "/diff",
        "activity": "/activity",
        "activity-list": "/activity?show=all",
        "tree": "/activity/customers",
        "tree-keys": "/activity/clicks",
        "search": "/search?q=orders",
        "docs": "/docs",
        "not-found": "/events/nothing",
    }
