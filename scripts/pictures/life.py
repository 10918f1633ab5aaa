"""What happens in the shop before a picture is taken: updates, late data, failures, a pause and a deadline."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from assetflow.ledger.read.reader import Reader
from assetflow.stack.calls import PrefectCalls
from assetflow.stack.demo import left_to_do
from assetflow.stack.environment import StackEnvironment

SHOP = Path(__file__).parent / "shop"
# The first run starts Spark.
SECONDS = 300.0
PATIENCE = 0.5
DAYS = 7

SOURCES = (
    "payments",
    "refunds",
    "exchange_rates",
    "ad_spend",
    "supplier_price_lists",
    "product_catalogue",
    "warehouse_stock_frankfurt",
    "warehouse_stock_rotterdam",
    "support_tickets",
)


class Life:
    """The shop's installation, and what happens to it.

    Parameters:
        environment: that of its stack, which runs.
        calls: its Prefect.
    """

    def __init__(self, environment: StackEnvironment, calls: PrefectCalls) -> None:
        self._environment = environment
        self._calls = calls
        self._http = httpx.Client(base_url=f"{environment.pages_url}/api/v1", verify=False, timeout=SECONDS)

    def live(self) -> None:
        """Let a week pass, at the end of which not everything is well."""
        self._emit(*({"uri": name, "extra": {"total": "12.50"}} for name in SOURCES))
        self._run("orders", "customers")
        self._emit(*self._hours(range(DAYS, 0, -1)))
        self._settle()
        for rows in (12_100, 11_950, 12_480, 9_300):
            self._run("orders", rows=rows)
            self._emit({"uri": "support_tickets"})
        self._settle()
        self._go_wrong()
        self._settle()

    def _go_wrong(self) -> None:
        """Let flows fail, an hour come late, a switch be turned, and a partner not deliver."""
        (self._environment.home / "lake" / "no-lead-time").touch()
        self._http.post("/consumers/marketing-dashboard/shop/pause", json={}).raise_for_status()
        self._emit({"uri": "supplier_price_lists"})
        self._emit(*self._hours([0]), *self._hours([DAYS - 2], hours=[5]))
        self._emit({"uri": "newsletter_opens"})
        self._emit({"uri": "payments", "extra": {"total": "12,50"}})
        self._run("orders")

    def _emit(self, *events: dict[str, object]) -> None:
        """Record updates as one recording."""
        self._http.post("/events", json={"events": events}).raise_for_status()

    def _hours(self, days_ago: Iterable[int], hours: Iterable[int] = range(24)) -> Iterable[dict[str, object]]:
        """Yield an update of the clicks for each hour of some days that has passed."""
        now = datetime.now(UTC)
        for ago in days_ago:
            for hour in hours:
                at = (now - timedelta(days=ago)).replace(hour=hour)
                if at <= now:
                    yield {"uri": "web_clicks", "partition_key": f"{at:%Y-%m-%dT%H}"}

    def _run(self, *flows: str, **parameters: object) -> None:
        """Run flows at the same time, to their end."""
        for run in [self._calls.start(f"{name}/shop", **parameters) for name in flows]:
            self._calls.wait_for_run(run, SECONDS)

    def _settle(self) -> None:
        """Wait until all that follows has happened."""
        end = time.monotonic() + SECONDS
        while True:
            runs = self._calls.flow_runs()
            with Reader.open(self._environment.home / "ledger.db") as reader:
                left = left_to_do(runs, self._calls, reader)
            if not left and len(self._calls.flow_runs()) == len(runs):
                return
            if time.monotonic() > end:
                raise TimeoutError(left)
            time.sleep(PATIENCE)
