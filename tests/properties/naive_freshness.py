"""A naive model of the core of chapter 8: Eager and OnMissing flows without partitions, looked at every ten seconds.

It is written from the rules and shares nothing with the code. It judges every flow at every pass, the upper ones first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from typing import Any, cast

Json = dict[str, Any]
Causes = dict[tuple[str, str | None], int]
RETRY_DELAY = 300


def second_of(text: str) -> int:
    return round((datetime.fromisoformat(text) - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds())


class NaiveFreshness:
    """Carries out a scenario; each kind of step is a method of its name."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.flows: dict[str, Json] = {}
        self.updates: list[Json] = []
        self.going: list[Json] = []
        self.decided: list[Json] = []
        self.states: Json = {}
        self.ages: dict[str, float | None] = {}
        # The place of each thing that is recorded: ends and deploys of one instant have an order, too (8.6).
        self.place = self.now = 0

    def answer(self) -> Json:
        steps = self.scenario["steps"]
        for name in sorted(self.scenario["consumers"]):
            self.deploy(name, self.scenario["consumers"][name])
        self.look(over=False)
        for now in range(0, second_of(steps[-1]["at"]) + 1, 10):
            self.now = now
            self.runs_end()
            for step in steps:
                if second_of(step["at"]) == now:
                    kind, what = next(iter(step.items()))
                    getattr(self, kind)(what, step)
                    self.look(over=False)
                    self.runs_end()
            self.look(over=True)
            while self.runs_end():
                self.look(over=True)
        return {"runs": self.decided, "states": self.states, "data_times": self.ages}

    def next_place(self) -> int:
        self.place += 1
        return self.place

    # What exists (8.2, 8.9)

    def newest(self, uri: str, until: int | None = None) -> Json | None:
        found = [each for each in self.updates if each["uri"] == uri and (until is None or each["place"] <= until)]
        return found[-1] if found else None

    def version(self, uri: str, until: int | None = None) -> Any:
        newest = self.newest(uri, until)
        return None if newest is None else newest["version"]

    def causes(self, flow: Json) -> Causes:
        """Return why the output of a flow is out of date, each with the place since which it is."""
        made, found = self.newest(flow["name"]), Causes()
        if made is None:
            return {("missing", flow["name"]): flow["made_since"]}
        for uri, read in made["read"].items():
            if uri not in flow["reads"]:
                found["dependency", uri] = flow["reads_since"]
            elif self.version(uri, read) != self.version(uri):
                before = self.version(uri, read)
                later = [each for each in self.updates if each["uri"] == uri and each["place"] > read]
                found["data", uri] = next(each["place"] for each in later if each["version"] != before)
        for uri in flow["reads"]:
            if uri not in made["read"]:
                found["dependency", uri] = flow["reads_since"]
        if flow["code"] is not None and made["code"] != flow["code"]:
            found["code", None] = flow["code_since"]
        return found

    # How old the data is (8.12); what is current is infinitely young

    def data_time(self, update: Json) -> float:
        if "read" not in update:
            return update["at"]
        # What was never there, then or later, was not read.
        there = [each for each in update["read"].items() if self.newest(each[0]) is not None]
        return min((self.as_read(*each) for each in there), default=update["started"])

    def as_read(self, uri: str, place: int) -> float:
        """Return the data time that an asset had for a run which read it up to a place."""
        read = self.newest(uri, place)
        later = [each for each in self.updates if each["uri"] == uri and each["place"] > place]
        if read is None:
            return later[0]["at"]
        others = [number for number, each in enumerate(later) if each["version"] != read["version"]]
        last = [read, *later[: others[0] if others else None]][-1]
        if uri in self.flows:
            return self.data_time(last)
        if "seen" in last:
            return last["seen"]
        return later[others[0]]["at"] if others else inf

    # Passes (8.4 to 8.7)

    def look(self, *, over: bool) -> None:
        said: dict[str, str] = {}
        coming: dict[str, bool] = {}
        starting: list[tuple[Json, Causes]] = []
        # What a flow reads has a name before its own.
        for name in sorted(self.flows):
            flow = self.flows[name]
            causes = self.causes(flow)
            said[name] = self.verdict(flow, causes, coming, over=over)
            runs = any(run["flow"] == name for run in self.going)
            follows = flow["kind"] == "eager" and not flow["paused"] and any(coming.get(uri) for uri in flow["reads"])
            coming[name] = runs or said[name] in ("run", "waits") or follows
            if said[name] == "run":
                starting.append((flow, causes))
        for flow, causes in starting:
            self.decided.append({"consumer": flow["name"], "at": self.now, "because": sorted(causes, key=str)})
            self.begin(flow)

    def verdict(self, flow: Json, causes: Causes, coming: dict[str, bool], *, over: bool) -> str:
        counting = [kind for kind, _ in causes if flow["kind"] == "eager" or kind == "missing"]
        if flow["kind"] is None or not counting:
            return "nothing"
        if flow["paused"] or any(run["flow"] == flow["name"] for run in self.going):
            return "held"
        if any(self.newest(uri) is None for uri in flow["reads"]):
            return "missing input"
        if flow["tried"] == self.inputs(flow):
            again = flow["again"]
            if (
                again is None
                or flow["failures"] > flow["retries"]
                or not (again < self.now or (over and again == self.now))
            ):
                return "tried"
        since = max(flow["kept_since"], min(causes.values()))
        waits = any(coming.get(uri) and self.flows[uri]["ended"] < since for uri in flow["reads"])
        return "waits" if waits else "run"

    def inputs(self, flow: Json) -> Any:
        return flow["code"], {uri: self.version(uri) for uri in flow["reads"]}

    # Runs

    def begin(self, flow: Json) -> Json:
        number = flow["begun"]
        flow["begun"] += 1
        run: Json = {"flow": flow["name"], "ends": self.now + flow["takes"], "inputs": self.inputs(flow)}
        run |= {"started": self.now, "code": flow["code"], "read": dict.fromkeys(flow["reads"], self.place)}
        run["outcome"] = flow["outcomes"][number] if number < len(flow["outcomes"]) else "completed"
        run["gives"] = flow["gives"][number] if number < len(flow["gives"]) else None
        self.going.append(run)
        return run

    def runs_end(self) -> bool:
        ended = False
        while due := [run for run in self.going if run["ends"] <= self.now]:
            self.end(min(due, key=lambda run: run["ends"]), None)
            self.look(over=False)
            ended = True
        return ended

    def end(self, run: Json, outcome: str | None) -> None:
        self.going.remove(run)
        flow = self.flows[run["flow"]]
        completed = (outcome or run["outcome"]) == "completed"
        if completed:
            read = {uri: self.version(uri, place) for uri, place in run["read"].items()}
            version: Any = run["gives"]
            if version is None and run["code"] is not None and any(each is not None for each in read.values()):
                version = (run["code"], read)
            self.update(flow["name"], version, code=run["code"], read=run["read"], started=run["started"])
        same = flow["tried"] == run["inputs"]
        flow["failures"] = 0 if completed else flow["failures"] + 1 if same else 1
        flow["again"] = None if completed else self.now + RETRY_DELAY
        flow |= {"tried": run["inputs"], "ended": self.next_place()}

    def update(self, uri: str, version: Any, **made: Any) -> None:
        place = self.next_place()
        row = {"uri": uri, "version": ("only", place) if version is None else version, "place": place, "at": self.now}
        self.updates.append(row | made)

    # Steps

    def deploy(self, name: str, given: Json) -> None:
        kind, options = next(iter((given["schedule"] or {None: {}}).items()))
        flow: Json = {"name": name, "kind": kind, "reads": given["reads"], "code": given.get("code_version")}
        flow |= {"retries": options.get("retries", 0), "takes": given["takes"], "outcomes": given["outcomes"]}
        flow["gives"] = given["gives"][name]
        place, before = self.next_place(), self.flows.get(name)
        if before is None:
            since = dict.fromkeys(("made_since", "kept_since", "code_since", "reads_since"), place)
            new: Json = {"paused": False, "tried": None, "failures": 0, "again": None, "ended": 0, "begun": 0}
            self.flows[name] = flow | since | new
            return
        for what, since in (("code", "code_since"), ("reads", "reads_since")):
            if before[what] != flow[what]:
                before[since] = place
        if before["kind"] is None:
            before["kept_since"] = place
        before |= flow

    def redeploy(self, consumers: Json, step: Json) -> None:  # noqa: ARG002
        for name, given in consumers.items():
            self.deploy(name, given)

    def event(self, uri: str, step: Json) -> None:
        self.update(uri, step["data_version"])

    def observe(self, uri: str, step: Json) -> None:
        if self.version(uri) != step["version"]:
            self.update(uri, step["version"])
        cast(Json, self.newest(uri))["seen"] = self.now

    def run(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.end(self.begin(self.flows[name]), "completed")

    def trigger(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.begin(self.flows[name])

    def finish(self, name: str, step: Json) -> None:  # noqa: ARG002
        for run in [each for each in self.going if each["flow"] == name]:
            self.end(run, "completed")

    def retry(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.flows[name] |= {"tried": None, "failures": 0, "again": None}

    def pause(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.flows[name]["paused"] = True

    def resume(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.flows[name]["paused"] = False

    def status(self, names: list[str], step: Json) -> None:  # noqa: ARG002
        behind: dict[str, bool] = {}
        for name in sorted(self.flows):
            causes = self.causes(self.flows[name])
            state = "missing" if ("missing", name) in causes else "stale" if causes else "fresh"
            above = any(behind.get(uri) for uri in self.flows[name]["reads"])
            # An input that was never made has no item.
            behind[name] = state != "missing" and (state == "stale" or above)
            self.states[name] = (state, state != "fresh" or above)
        assert set(names) == {"r", "s", *self.flows}

    def advance(self, *_: Any) -> None: ...

    def freshness(self, *_: Any) -> None:
        newest = {name: self.newest(name) for name in self.flows}
        self.ages = {name: None if each is None else self.data_time(each) for name, each in newest.items()}

    def plan(self, *_: Any) -> None: ...
