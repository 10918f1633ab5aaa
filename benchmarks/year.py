"""What a year of updates costs: `python -m benchmarks.year`.

At each number of events, with 5,000 assets and as many consumers: the size of the ledger, the prune of one day of 90,
the slowest page, and a start after an hour in which 200 updates a minute came. The last line is a year of 50 million
updates kept for 90 days, extrapolated in a straight line from the two numbers of events.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from assetflow.evaluator.consumers.registry import AUTOMATIONS
from assetflow.ledger import Ledger
from benchmarks import pages
from benchmarks.growth import deploy, fill_events, seconds_to_start
from benchmarks.latency import event, installation
from benchmarks.report import Figures, parser, tell
from tests.integration.installation import Installation

DAYS = 90
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
KEPT = 50_000_000 * DAYS // 365
AT_ONCE = 200
SECONDS = 3_600.0
NAMES = ("megabytes", "prune_seconds", "longest_prune_ms", "slowest_page_p95_ms", "start_seconds", "decided_seconds")


def figures(sizes: list[int], assets: int, updates: int, samples: int) -> Figures:
    """All figures."""
    rows = [_row(events, assets, updates, samples) for events in sizes]
    few, many = rows[0], rows[-1]
    share = (KEPT - few["events"]) / (many["events"] - few["events"])
    year = {name: round(few[name] + share * (many[name] - few[name]), 1) for name in NAMES}
    return {"start_after_an_hour_seconds": many["decided_seconds"], "sizes": [*rows, {"events": KEPT} | year]}


def _row(events: int, assets: int, updates: int, samples: int) -> Figures:
    seconds = DAYS * 86_400 / events
    with TemporaryDirectory(prefix="assetflow-year-") as folder:
        place = Path(folder) / "ledger.db"
        pages.prepare(place, assets, events, AT_ONCE, seconds)
        megabytes = round(place.stat().st_size / 1e6, 1)
        slowest = pages.figures(assets, events, AT_ONCE, samples, place)["slowest_p95_ms"]
        pruned, longest = _prune(place, FIRST + timedelta(days=1))
    start, decided = _start(events, assets, updates, seconds)
    found = (megabytes, pruned, longest, slowest, start, decided)
    return {"events": events} | dict(zip(NAMES, found, strict=True))


def _prune(place: Path, before: datetime) -> tuple[float, float]:
    """Prune one day, and return the seconds for all, and the milliseconds of the longest transaction."""
    taken: list[float] = []
    after: int | None = 0
    with Ledger.open(place) as ledger:
        while after is not None:
            started = time.monotonic()
            after = ledger.writer.prune(before, after).upto
            taken.append(time.monotonic() - started)
    return round(sum(taken), 2), round(1000 * max(taken), 1)


def _start(events: int, consumers: int, updates: int, seconds: float) -> tuple[float, float]:
    """Return the seconds from a start after an hour's downtime until it is ready, and until all is decided."""
    with installation(start=False) as site:
        for number in range(consumers):
            deploy(site, number)
        seconds_to_start(site)
        with site.reader() as ledger:
            site.until(lambda: ledger.cursor(AUTOMATIONS), SECONDS)
        site.kill()
        fill_events(site.home / "ledger.db", events, consumers, seconds)
        _post(site, consumers, updates)
        begun = time.monotonic()
        ready = seconds_to_start(site)
        return round(ready, 1), round(_seconds_to_decide(site, events + updates, begun), 1)


def _post(site: Installation, consumers: int, updates: int) -> None:
    """Post updates as fast as Prefect stores them: it drops events when 10,000 wait."""
    for first in range(0, updates, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, updates))
        site.post("/events", [event(f"s3://lake/ring/{number % consumers:06}") for number in numbers])
        site.until(lambda stored=numbers.stop: _stored(site) >= stored, SECONDS)


def _stored(site: Installation) -> int:
    updated = {"event": {"name": ["assetflow.asset.updated"]}}
    return site.post("/events/filter", {"filter": updated, "limit": 1})["total"]


def _seconds_to_decide(site: Installation, last: int, begun: float) -> float:
    with site.reader() as ledger:
        site.until(lambda: ledger.status().last_decision >= last, SECONDS)
    return time.monotonic() - begun


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--events", type=int, nargs=2, default=[500_000, 5_000_000], help="two sizes of the ledger")
    options.add_argument("--assets", type=int, default=5_000, help="assets, and consumers")
    options.add_argument("--updates", type=int, default=12_000, help="updates during the downtime")
    options.add_argument("--samples", type=int, default=20, help="answers of each page")
    given = options.parse_args()
    tell(figures(given.events, given.assets, given.updates, given.samples), as_json=given.json)


if __name__ == "__main__":
    main()
