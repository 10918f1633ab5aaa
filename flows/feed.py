"""A feed of flights: a file that somebody else writes. `python -m flows.feed next-day` delivers one more day.

It begins with two days of January 2013. `python -m flows.feed bugfix` stands for a commit: `flows.freshness` is correct
from then on, and deploying it builds again what depends on it.
"""

from __future__ import annotations

import csv
import os
import sys

from flows.lake import LAKE, source_file

FEED = LAKE / "feed" / "flights.csv"
BUGFIX = LAKE / "feed" / "bugfix"
FIRST_DAYS = 2

Row = dict[str, str]


def deliver(days: int) -> None:
    """Write the feed with the flights of the first days of 2013. A reader sees the old file or the new one."""
    FEED.parent.mkdir(parents=True, exist_ok=True)
    part = FEED.with_name(f"flights.{os.getpid()}.part")
    # The source begins with January, day by day.
    with source_file("flights.csv").open(newline="") as source, part.open("w", newline="") as written:
        reader = csv.DictReader(source)
        writer = csv.DictWriter(written, reader.fieldnames or ())
        writer.writeheader()
        for row in reader:
            if int(row["day"]) > days:
                break
            writer.writerow(row)
    part.replace(FEED)


def flights() -> list[Row]:
    """The flights of the feed, each as text."""
    with FEED.open(newline="") as file:
        return list(csv.DictReader(file))


def main(what: str) -> None:
    """Deliver one more day, or commit the bugfix."""
    if what == "bugfix":
        BUGFIX.touch()
    else:
        deliver(len({row["day"] for row in flights()}) + 1 if FEED.exists() else FIRST_DAYS)


if __name__ == "__main__":
    main(sys.argv[1])
