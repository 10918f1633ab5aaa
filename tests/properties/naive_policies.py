"""A naive model of freshness policies: what they tell, and which Lazy flows they ask for (8.11, 8.13 to 8.15)."""

from math import ceil, inf
from typing import Any

from tests.properties.naive_items import NaiveItems

Json = dict[str, Any]
Pull = tuple[int, list[str]]
Pulls = dict[str, Pull]


class NaivePolicies(NaiveItems):
    """The policies, each declared by the maker of its asset from the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, str] = {}
        self.told: list[tuple[int, str, str]] = []

    def tell(self) -> None:
        for uri, flow in self.flows.items():
            before, after = self.states.get(uri, "unknown"), self.state(flow)
            self.states[uri] = after
            if before != after and (after in ("warn", "fail") or before in ("warn", "fail")):
                self.told.append((self.now, uri, after))

    def state(self, flow: Json) -> str:
        policy, age = flow["policy"], self.age_of(flow["name"])
        if policy is None:
            return "unknown"
        if age is None:
            return "fail" if self.now >= policy["maximum_lag"] else "unknown"
        lags = {"fail": policy["maximum_lag"], "warn": policy.get("warn_after", inf)}
        return next((state for state, lag in lags.items() if self.now - age >= lag), "pass")

    def pulls(self, *, over: bool) -> Pulls:
        """Return the flows that policies pull now, each with the place of its due moment, and the assets (8.14)."""
        found: Pulls = {}
        for uri, due, at_once, pulled in self.once("demands", self.demands):
            if at_once or due < self.now or (over and due == self.now):
                for name in pulled:
                    place, uris = found.get(name, (self.place_after(due), []))
                    found[name] = min(place, self.place_after(due)), [*uris, uri]
        return found

    def demands(self) -> list[tuple[str, float, bool, set[str]]]:
        found = [(uri, flow, *self.demand(flow)) for uri, flow in self.flows.items()]
        return [(uri, due, at_once, self.pulled(flow, need)) for uri, flow, due, need, at_once in found if due < inf]

    def demand(self, flow: Json) -> tuple[float, float, bool]:
        """Return when the maker of an asset is due, how young its inputs have to be, and if it was never made."""
        if flow["policy"] is None or flow["kind"] is None or flow["by_key"]:
            return inf, inf, False
        lag = flow["policy"]["maximum_lag"]
        spare = max(lag - self.way(flow) - lag / 10, 60)
        age = self.age_of(flow["name"])
        flows = [self.flows[name] for name in {flow["name"], *self.above(flow)}]
        failed = [each["failed"] for each in flows if each["failed"] is not None]
        if failed and age != inf:
            roots = [each["good"] for each in flows if each["kind"] == "lazy" and not each["reads"]]
            age = max(moment for moment in (age, *failed, *roots) if moment is not None)
        return (0, -spare / 2, True) if age is None else (age + spare, age + spare / 2, False)

    def makers(self, flow: Json) -> list[Json]:
        return [self.flows[uri] for uri in flow["reads"] if uri in self.flows and self.flows[uri]["kind"]]

    def above(self, flow: Json) -> set[str]:
        return {name for maker in self.makers(flow) for name in (maker["name"], *self.above(maker))}

    def way(self, flow: Json) -> float:
        """Return how long a flow and what runs before it take (8.15)."""
        last = sorted(flow["durations"][-20:])
        own = last[ceil(len(last) * 9 / 10) - 1] if last else 0
        return own + max(map(self.way, self.makers(flow)), default=0)

    def pulled(self, flow: Json, need: float) -> set[str]:
        found, waiting = {flow["name"]}, [flow]
        while waiting:
            each = waiting.pop()
            if self.runs_of(each):
                continue
            for maker in self.makers(each):
                age = self.age_of(maker["name"])
                is_older = age is None or age < need or self.has_failed_for_good(each)
                if maker["name"] not in found and is_older:
                    found.add(maker["name"])
                    waiting.append(maker)
        return found

    def runs_of(self, flow: Json) -> list[Json]:
        raise NotImplementedError

    def has_failed_for_good(self, flow: Json) -> bool:
        raise NotImplementedError
