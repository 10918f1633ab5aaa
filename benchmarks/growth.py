"""What growth costs: more consumers, more events in the ledger, more deployments: `python -m benchmarks.growth`.

The engine's figures at each number of consumers, and with a ledger that holds very many events already (inserted in
bulk); then, on a Prefect server with very many scheduled deployments, how long the evaluator takes to start, and how
long an update takes to its run.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import httpx

from assetflow.core.values.assets import Asset
from assetflow.evaluator.consumers.registry import AUTOMATIONS
from assetflow.ledger import Ledger
from benchmarks import ring
from benchmarks.engine import Measured, in_own_process, on_sqlite
from benchmarks.latency import Road, installation
from benchmarks.report import Figures, median, parser, tell
from tests.integration.installation import Installation

AT_ONCE = 250_000
SECONDS = 3_600.0

_EVENTS = """
WITH RECURSIVE one(number) AS (SELECT :first UNION ALL SELECT number + 1 FROM one WHERE number < :last)
INSERT INTO event (sequence, id, recording, uri, occurred, recorded, extra, metrics, aliases, origin, inputs,
    checks, asset_name, asset_group, asset_extra)
SELECT number, lower(hex(randomblob(16))), lower(hex(randomblob(16))), uri, at, at, '{"rows":1}', '{}', '[]',
    '{"kind":"api"}', '{}', '[]', uri, '', '{}'
FROM (
    SELECT number, printf('s3://lake/ring/%06d', number % :assets) AS uri,
        strftime('%Y-%m-%dT%H:%M:%f000+00:00', '2026-01-01', (number * :seconds) || ' seconds') AS at
    FROM one
)
"""
_RECEIPTS = """
INSERT INTO receipt (sequence, consumer, target_key, status, decision, by, why, error, at)
SELECT sequence, 1 + sequence % :assets, '', 'consumed', sequence, '', '', '', recorded
FROM event WHERE sequence BETWEEN :first AND :last
"""


def fill(place: Path, events: int, consumers: int, seconds: float = 0.0) -> None:
    """A ledger whose consumers have had so many events, each of which was consumed.

    Parameters:
        seconds: how much later each event was recorded than the one before it; the first on 1 January 2026.
    """
    with Ledger.open(place) as ledger:
        ring.deploy(ledger, ring.assets(consumers))
    fill_events(place, events, consumers, seconds)


def fill_events(place: Path, events: int, consumers: int, seconds: float) -> None:
    """Add such events to a ledger with so many consumers and no events."""
    with Ledger.open(place) as ledger:
        for first in range(1, events + 1, AT_ONCE):
            last = min(first + AT_ONCE - 1, events)
            these = {"first": first, "last": last, "assets": consumers, "seconds": seconds}
            with ledger.writes() as connection:
                connection.exec_driver_sql(_EVENTS, these)
                connection.exec_driver_sql(_RECEIPTS, these)
                connection.exec_driver_sql("UPDATE ledger SET last_event = :last, last_decision = :last", these)


def on_a_full_ledger(events: int, recordings: int, consumers: int) -> tuple[Measured, float]:
    """The engine's figures on such a ledger, and its size in gigabytes."""
    with tempfile.TemporaryDirectory(prefix="assetflow-growth-") as folder:
        place = Path(folder) / "ledger.db"
        fill(place, events, consumers)
        size = place.stat().st_size / 1e9
        return in_own_process(place, recordings, consumers, deploy=False), size


def start_up(deployments: int, samples: int) -> Figures:
    """With so many scheduled deployments: the first start, the next one, and updates after it."""
    with installation(start=False) as site:
        for number in range(deployments - 1):
            deploy(site, number)
        road = Road(site, "one", lambda assets: assets[0], ours=True)
        first = seconds_to_start(site)
        with site.reader() as ledger:
            # What it made has been followed; before, the next one would have to read it once more.
            site.until(lambda: ledger.cursor(AUTOMATIONS), SECONDS)
        site.kill()
        again = seconds_to_start(site)
        taken = [road.latency(road.assets[0]) for _ in range(samples)]
        found = [seconds for seconds in taken if seconds is not None]
    return {
        "deployments": deployments,
        "first_start_seconds": round(first, 1),
        "start_seconds": round(again, 1),
        "latency_median_ms": round(1000 * median(found), 1),
    }


def deploy(site: Installation, number: int) -> None:
    """A scheduled deployment; a server that is busy is asked again."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            site.deploy(f"many-{number}", Asset(f"s3://lake/ring/{number:06}"))
            return
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                raise
            time.sleep(0.1)
    raise TimeoutError("Prefect stays busy")


def seconds_to_start(site: Installation) -> float:
    """Start an evaluator, and return the seconds until it is ready."""
    started = time.monotonic()
    (site.home / "evaluator.json").unlink(missing_ok=True)
    site.start(ready=False)
    site.until((site.home / "evaluator.json").exists, SECONDS)
    return time.monotonic() - started


def figures(consumers: list[int], events: int, deployments: list[int], recordings: int, samples: int) -> Figures:
    """All figures."""
    engine: list[Figures] = []
    for number in consumers:
        found = on_sqlite(recordings, number, 1)
        engine.append(_row(number, found))
    full, size = on_a_full_ledger(events, recordings, consumers[1])
    starts = [start_up(number, samples) for number in deployments]
    return {
        "cost_ratio_most_consumers": round(engine[-1]["cpu_ms_per_event"] / engine[0]["cpu_ms_per_event"], 3),
        "ledger_events": events,
        "ledger_gigabytes": round(size, 2),
        "cost_ratio_full_ledger": round(full.cpu_ms_per_event / engine[1]["cpu_ms_per_event"], 3),
        "full_ledger_cpu_ms_per_event": round(full.cpu_ms_per_event, 4),
        "start_seconds": starts[-1]["start_seconds"] if starts else None,
        "consumers": engine,
        "deployments": starts,
    }


def _row(consumers: int, found: Measured) -> Figures:
    return {
        "consumers": consumers,
        "cpu_ms_per_event": round(found.cpu_ms_per_event, 4),
        "events_per_second": round(found.events_per_second),
    }


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--consumers", type=int, nargs="+", default=[100, 1_000, 10_000, 50_000])
    options.add_argument("--events", type=int, default=10_000_000, help="events that the full ledger holds")
    options.add_argument("--deployments", type=int, nargs="*", default=[100, 1_000, 10_000])
    options.add_argument("--recordings", type=int, default=5_000)
    options.add_argument("--samples", type=int, default=50, help="updates on each number of deployments")
    given = options.parse_args()
    found = figures(given.consumers, given.events, given.deployments, given.recordings, given.samples)
    tell(found, as_json=given.json)


if __name__ == "__main__":
    main()
