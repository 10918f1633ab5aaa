"""Counts the source files again, without Spark, and compares with what the flows wrote: `python -m flows.check`.

Prints one JSON document, `{"ok": …, "checks": [{"check", "expected", "found", "ok"}, …]}`, and exits 1 if they differ.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from flows import feed, freshness, lake, partitions

Row = dict[str, str]
Report = dict[str, dict[str, float]]


@dataclass
class Count:
    """Flights of one group, with the delays that are known."""

    flights: int = 0
    cancelled: int = 0
    seats: int = 0
    delays: list[float] = field(default_factory=list[float])
    planes: set[str] = field(default_factory=set[str])

    @property
    def mean_dep_delay(self) -> float:
        return sum(self.delays) / len(self.delays) if self.delays else math.nan


def rows(name: str) -> Iterator[Row]:
    """The rows of a source file as text."""
    with lake.source_file(name).open(newline="") as file:
        yield from csv.DictReader(file)


def count() -> tuple[int, dict[str, Count], dict[str, Count], dict[str, Count]]:
    """All flights, and their counts by carrier, by airport and visibility, and by manufacturer."""
    visibility = {(row["origin"], row["time_hour"]): row["visib"] for row in rows("weather.csv")}
    planes = {row["tailnum"]: row for row in rows("planes.csv")}
    by_carrier: dict[str, Count] = defaultdict(Count)
    by_weather: dict[str, Count] = defaultdict(Count)
    by_manufacturer: dict[str, Count] = defaultdict(Count)
    total = 0
    for flight in rows("flights.csv"):
        total += 1
        _add(by_carrier[flight["carrier"]], flight)
        seen = visibility.get((flight["origin"], flight["time_hour"]))
        if seen is not None:
            _add(by_weather[f"{flight['origin']} {math.floor(float(seen))}"], flight)
        plane = planes.get(flight["tailnum"])
        if plane is not None:
            group = by_manufacturer[plane["manufacturer"]]
            _add(group, flight)
            group.planes.add(flight["tailnum"])
            group.seats += int(plane["seats"])
    return total, by_carrier, by_weather, by_manufacturer


def count_days() -> tuple[dict[str, int], dict[str, Count]]:
    """Of the three days: the weather's rows by hour, and the flights by day and visibility."""
    hours: dict[str, int] = defaultdict(int)
    visibility: dict[tuple[str, str], str] = {}
    for row in rows("weather.csv"):
        if day_of(row) in partitions.DAYS:
            hours[f"{day_of(row)}T{int(row['hour']):02}"] += 1
            visibility[row["origin"], row["time_hour"]] = row["visib"]
    days: dict[str, Count] = defaultdict(Count)
    for flight in rows("flights.csv"):
        seen = visibility.get((flight["origin"], flight["time_hour"]))
        if day_of(flight) in partitions.DAYS and seen is not None:
            _add(days[f"{day_of(flight)} {math.floor(float(seen))}"], flight)
    return hours, days


def day_of(row: Row) -> str:
    """The day of a row as a partition key."""
    return f"{int(row['year']):04}-{int(row['month']):02}-{int(row['day']):02}"


def _add(group: Count, flight: Row) -> None:
    group.flights += 1
    group.cancelled += flight["dep_time"] == "NA"
    if flight["dep_delay"] != "NA":
        group.delays.append(float(flight["dep_delay"]))


def dataset(name: str) -> list[dict[str, object]]:
    """The rows of a dataset of the lake."""
    found: list[dict[str, object]] = pq.read_table(lake.LAKE / name).to_pylist()
    return found


def checks() -> list[dict[str, object]]:
    """One entry for each number that has to agree."""
    return [*lake_checks(), *partition_checks(), *freshness_checks()]


def freshness_checks() -> list[dict[str, object]]:
    """The tables that are kept up to date: by hour and by day of the feed as it is, the summary of its first days."""
    hours: dict[str, Count] = defaultdict(Count)
    days: dict[str, Count] = defaultdict(Count)
    for flight in feed.flights():
        if flight["dep_delay"] != "NA":
            delay = max(0.0, float(flight["dep_delay"]))
            hours[flight["hour"]].delays.append(delay)
            days[flight["day"]].delays.append(delay)
    return [
        check("mean delay of each hour, after the bugfix", _means(hours), _rounded(freshness.load(freshness.by_hour))),
        check("mean delay of each day, after the bugfix", _means(days), _rounded(freshness.load(freshness.by_day))),
        check("days of the summary, as old as it may be", feed.FIRST_DAYS, freshness.load(freshness.summary)["days"]),
    ]


def _means(groups: dict[str, Count]) -> dict[str, object]:
    return {key: near(group.mean_dep_delay) for key, group in groups.items()}


def _rounded(means: dict[str, float]) -> dict[str, object]:
    return {key: near(mean) for key, mean in means.items()}


def partition_checks() -> list[dict[str, object]]:
    """The partitions: the hours, the days, and the month that is made of them."""
    hours, days = count_days()
    found_hours: dict[str, int] = defaultdict(int)
    for row in dataset("weather_hourly"):
        found_hours[str(row["key"])] += 1
    found_days = {f"{row['key']} {row['visibility']}": row for row in dataset("daily_delays")}
    (month,) = dataset("monthly_report")
    flights, delay = sum(each.flights for each in days.values()), sum(sum(each.delays) for each in days.values())
    return [
        check("weather records of each hour of three days", dict(hours), dict(found_hours)),
        check(
            "flights and delay of each day by visibility",
            {key: [group.flights, near(sum(group.delays))] for key, group in days.items()},
            {key: [row["flights"], near(row["dep_delay"] or 0)] for key, row in found_days.items()},
        ),
        check(
            "days, flights and delay of the month",
            [str(month["key"]), len(partitions.DAYS), flights, near(delay)],
            ["2013-01", month["days"], month["flights"], near(month["dep_delay"])],
        ),
    ]


def lake_checks() -> list[dict[str, object]]:
    """The lake and its reports."""
    total, by_carrier, by_weather, by_manufacturer = count()
    carriers = {str(row["carrier"]): row for row in dataset("carrier_report")}
    weather = {f"{row['origin']} {row['visibility']}": row for row in dataset("delay_by_weather")}
    fleet = {str(row["manufacturer"]): row for row in dataset("fleet_report")}
    board = {str(row["report"]): row for row in dataset("board")}
    return [
        check("flights in the lake", total, pq.read_table(lake.LAKE / "flights", columns=["year"]).num_rows),
        check(
            "flights, cancellations and mean delay of each carrier",
            {key: [group.flights, group.cancelled, near(group.mean_dep_delay)] for key, group in by_carrier.items()},
            {key: [row["flights"], row["cancelled"], near(row["mean_dep_delay"])] for key, row in carriers.items()},
        ),
        check(
            "flights and mean delay by airport and visibility",
            {key: [group.flights, near(group.mean_dep_delay)] for key, group in by_weather.items()},
            {key: [row["flights"], near(row["mean_dep_delay"])] for key, row in weather.items()},
        ),
        check(
            "planes, flights and seats of each manufacturer",
            {key: [len(group.planes), group.flights, group.seats] for key, group in by_manufacturer.items()},
            {key: [row["planes"], row["flights"], row["seats"]] for key, row in fleet.items()},
        ),
        check("datasets of arrivals: a check holds them back", 0, len(list(lake.LAKE.glob("arrivals")))),
        check(
            "the lines of the last board",
            {
                "delay_by_weather": [len(by_weather), sum(group.flights for group in by_weather.values())],
                "fleet_report": [len(by_manufacturer), sum(group.flights for group in by_manufacturer.values())],
            },
            {key: [row["rows"], row["flights"]] for key, row in board.items()},
        ),
    ]


def check(name: str, expected: object, found: object) -> dict[str, object]:
    """One comparison; large values are summed up when they agree."""
    agrees = expected == found
    short = f"{len(expected)} groups" if isinstance(expected, dict) and agrees else None
    return {"check": name, "expected": short or expected, "found": short or found, "ok": agrees}


def near(value: object) -> float | None:
    """A mean, rounded to what the order of summing cannot change."""
    return None if value is None or math.isnan(float(str(value))) else round(float(str(value)), 6)


def main() -> int:
    """Print the comparison."""
    found = checks()
    agrees = all(entry["ok"] for entry in found)
    json.dump({"ok": agrees, "checks": found}, sys.stdout, indent=2)
    print()
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
