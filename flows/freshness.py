"""Tables that are kept up to date: no table has a schedule, only the file that they are made from is looked at.

The feed changes (`flows.feed`), and a table of flights follows, and an hourly and a daily one that are made from it.
The daily one has to hold what there is at nine in the morning; the summary may be a day old, and runs as seldom as that
allows. A bugfix is a new `code_version`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from assetflow import Asset, Eager, FreshnessPolicy, Lazy, flow, observe, task
from flows import feed
from flows.lake import LAKE

AT_NINE = FreshnessPolicy(timedelta(days=1), deadline="0 9 * * *", timezone="America/New_York")
DAILY = FreshnessPolicy(timedelta(days=1))
# A worker imports this file for each run, so that it runs the code that was deployed.
IS_FIXED = feed.BUGFIX.exists()

arrivals = Asset(feed.FEED.as_uri(), name="feed", group="feed")


def table(name: str, policy: FreshnessPolicy | None = None) -> Asset:
    """The asset of a table that is one JSON file."""
    return Asset((LAKE / f"{name}.json").as_uri(), name=name, group="feed", freshness=policy)


flight_delays = table("flight_delays")
by_hour = table("delays_by_hour")
by_day = table("delays_by_day", AT_NINE)
summary = table("delay_summary", DAILY)


def load(asset: Asset) -> Any:
    """The content of a table."""
    return json.loads(Path(asset.uri.removeprefix("file://")).read_text())


def save(asset: Asset, content: object) -> None:
    """Write a table."""
    Path(asset.uri.removeprefix("file://")).write_text(json.dumps(content))


def delay_of(row: feed.Row) -> float:
    """The minutes that a flight left late. The bug: who leaves early makes up for others."""
    delay = float(row["dep_delay"])
    return max(0.0, delay) if IS_FIXED else delay


def mean_delays(column: str) -> dict[str, float]:
    """The mean delay of the flights for each value of a column."""
    delays: defaultdict[str, list[float]] = defaultdict(list)
    for row in load(flight_delays):
        delays[row[column]].append(row["delay"])
    return {key: sum(each) / len(each) for key, each in delays.items()}


@observe(arrivals, every=timedelta(minutes=5))
def watch_feed() -> str:
    """Look at the feed. The first look delivers its first days."""
    if not feed.FEED.exists():
        feed.deliver(feed.FIRST_DAYS)
    return str(feed.FEED.stat().st_mtime_ns)


@task(inlets=[arrivals], outlets=[flight_delays], code_version="2" if IS_FIXED else "1")
def build_delays() -> None:
    """The flights of the feed that left, with their delays."""
    left = (row for row in feed.flights() if row["dep_delay"] != "NA")
    save(flight_delays, [{"day": row["day"], "hour": row["hour"], "delay": delay_of(row)} for row in left])


@task(inlets=[flight_delays], outlets=[by_hour])
def build_hours() -> None:
    """The mean delay of each hour of the day."""
    save(by_hour, mean_delays("hour"))


@task(inlets=[flight_delays], outlets=[by_day])
def build_days() -> None:
    """The mean delay of each day."""
    save(by_day, mean_delays("day"))


@task(inlets=[by_hour, by_day], outlets=[summary])
def build_summary() -> None:
    """How many days there are, and the worst hour."""
    hours: dict[str, float] = load(by_hour)
    save(summary, {"days": len(load(by_day)), "worst_hour": max(hours, key=lambda hour: hours[hour])})


@flow(schedule=Eager())
def delays() -> None:
    """Runs when the feed or the code has changed."""
    build_delays()


@flow(schedule=Eager())
def delays_by_hour() -> None:
    """Runs when the delays have changed."""
    build_hours()


@flow(schedule=Eager())
def delays_by_day() -> None:
    """Runs when the delays have changed; `alert` runs if it is too old at nine."""
    build_days()


@flow(schedule=Lazy(expected_duration=timedelta(minutes=1)))
def delay_summary() -> None:
    """Runs as seldom as its policy allows, with what is newest then."""
    build_summary()
