"""A naive model of what chapter 8 says of items: which of them a target reads, their versions, and how old data is.

It is written from the rules and shares nothing with the code. The item without a key has the key `None`.
"""

from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from math import inf
from typing import Any

Json = dict[str, Any]
Item = tuple[str, str | None]


@cache
def second_of(text: str) -> int:
    return round((datetime.fromisoformat(text) - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds())


class NaiveItems:
    """All updates, and the flows by their names, which are the URIs of what they make."""

    def __init__(self) -> None:
        self.flows: dict[str, Json] = {}
        self.updates: list[Json] = []
        self.now = 0
        # When each thing happened: what happens at one instant has an order, too (8.6).
        self.times = [-1]
        self.known: tuple[int, dict[Any, Any]] = 0, {}

    @property
    def place(self) -> int:
        return len(self.times) - 1

    def next_place(self) -> int:
        self.times.append(self.now)
        return self.place

    def place_after(self, instant: float) -> int:
        return bisect_right(self.times, instant)

    def once(self, what: Any, find: Callable[[], Any]) -> Any:
        """Return what is found as long as nothing else happens."""
        if self.known[0] != self.place:
            self.known = self.place, {}
        if what not in self.known[1]:
            self.known[1][what] = find()
        return self.known[1][what]

    # Items and their versions (8.2, 8.3)

    def of(self, uri: str, until: float = inf) -> list[Json]:
        return [each for each in self.updates if each["uri"] == uri and each["place"] <= until]

    def newest(self, item: Item, until: float = inf) -> Json | None:
        return next((each for each in reversed(self.of(item[0], until)) if each["key"] == item[1]), None)

    def version(self, item: Item, until: float = inf) -> Any:
        newest = self.newest(item, until)
        return None if newest is None else newest["version"]

    def keys(self, uri: str, until: float = inf) -> set[str | None]:
        return {each["key"] for each in self.of(uri, until)}

    def read(self, uri: str, mapper: Any, key: str | None, until: float = inf) -> list[Item]:
        """Return the items of an input that a target reads by a mapper."""
        there = self.keys(uri, until)
        chosen: list[str | None] = sorted(there - {None}, key=str)
        if mapper == "identity":
            chosen = [key] if key is not None and key in there else []
        elif mapper is not None and "last" in mapper:
            return [(uri, each) for each in chosen[-mapper["last"] :]]
        return [(uri, each) for each in chosen] + ([(uri, None)] if None in there else [])

    def made(self, flow: Json, key: str | None) -> Json | None:
        """Return the update by which an output is judged: of a flow without partitions, the newest one (8.5)."""
        if key is not None or flow["by_key"]:
            return self.newest((flow["name"], key))
        return next(reversed(self.of(flow["name"])), None)

    # How old data is (8.12); what is current is infinitely young

    def age_of(self, uri: str) -> float | None:
        """Return the data time of what a flow makes: of a partitioned flow, that of the greatest key."""

        def find() -> float | None:
            keys = [each for each in self.keys(uri) if each is not None]
            newest = self.made(self.flows[uri], max(keys, default=None) if self.flows[uri]["by_key"] else None)
            return None if newest is None else self.data_time(newest)

        return self.once(("age", uri), find)

    def data_time(self, update: Json) -> float:
        found: list[float] = []
        for uri, mapper in update["mappers"].items():
            then = self.read(uri, mapper, update["key"], update["read"])
            # One that came later counts, too, if the same mapper chooses it.
            later = [
                each for each in self.read(uri, mapper, update["key"]) if self.newest(each, update["read"]) is None
            ]
            found += [self.as_read(item, update["read"]) for item in [*then, *later]]
        return min(found, default=update["started"])

    def as_read(self, item: Item, place: int) -> float:
        """Return the data time that an item had for a run which read it up to a place."""
        read = self.newest(item, place)
        later = [each for each in self.of(item[0]) if each["key"] == item[1] and each["place"] > place]
        if read is None:
            return later[0]["at"]
        others = [number for number, each in enumerate(later) if each["version"] != read["version"]]
        last = [read, *later[: others[0] if others else None]][-1]
        if item[0] in self.flows:
            return self.data_time(last)
        if "seen" in last:
            return last["seen"]
        return later[others[0]]["at"] if others else inf
