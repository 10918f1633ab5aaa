"""A naive model of chapter 8: what flows make, try and wait for, looked at every ten seconds.

It is written from the rules and shares nothing with the code. It judges every target at every pass, the upper ones
first.
"""

from collections import Counter
from math import inf
from typing import Any, cast

from tests.properties.naive_items import Item, Json, second_of
from tests.properties.naive_policies import NaivePolicies, Pull, Pulls

Causes = dict[tuple[str, str | None, str | None], int]
Target = tuple[str, str | None]
RETRY_DELAY = 300


class NaiveFreshness(NaivePolicies):
    """Carries out a scenario; each kind of step is a method of its name."""

    def __init__(self, scenario: Json) -> None:
        super().__init__()
        self.scenario = scenario
        self.targets: dict[Target, Json] = {}
        self.going: list[Json] = []
        self.decided: list[Json] = []
        self.statuses: Json = {}
        self.ages: dict[str, float | None] = {}
        self.planned: dict[Target, str] = {}
        self.looked: Any = None

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
                    self.next_place()
                    getattr(self, kind)(what, step)
                    self.look(over=False)
                    self.runs_end()
            self.look(over=True)
            while self.runs_end():
                self.look(over=True)
            self.tell()
        found = {"runs": self.decided, "statuses": self.statuses, "data_times": self.ages}
        return found | {"plan": self.planned, "told": self.told}

    def target(self, flow: Json, key: str | None) -> Json:
        return self.record(self.which(flow, key))

    def which(self, flow: Json, key: str | None) -> Target:
        """Return the target of a key: a flow without partitions has one, whatever keys its runs write."""
        return flow["name"], key if flow["by_key"] else None

    def record(self, which: Target) -> Json:
        new: Json = {"tried": None, "waived": None, "failures": 0, "again": None, "ended": 0}
        return self.targets.setdefault(which, new)

    def keys_of(self, flow: Json) -> list[str | None]:
        if not flow["by_key"]:
            return [None]
        mapped = [uri for uri, mapper in flow["mappers"].items() if mapper == "identity"]
        return sorted({key for uri in (*mapped, flow["name"]) for key in self.keys(uri)} - {None}, key=str)

    # What is out of date (8.4, 8.9)

    def causes(self, flow: Json, key: str | None) -> Causes:
        """Return why an output of a flow is out of date, each cause with the place since which it is one."""
        name, made, found = flow["name"], self.made(flow, key), Causes()
        if made is None:
            return {("missing", name, None): flow["made_since"]}
        for uri in sorted({*made["mappers"], *flow["reads"]}):
            if uri not in made["mappers"] or uri not in flow["reads"]:
                found["dependency", uri, None] = flow["reads_since"]
                continue
            for item in self.read(uri, flow["mappers"][uri], key if flow["by_key"] else None):
                before = self.version(item, made["read"])
                if before != self.version(item):
                    later = [each for each in self.of(uri) if each["key"] == item[1] and each["place"] > made["read"]]
                    found["data", *item] = next(each["place"] for each in later if each["version"] != before)
        if flow["code"] is not None and made["code"] != flow["code"]:
            found["code", None, None] = flow["code_since"]
        return found

    def counts(self, flow: Json, key: str | None) -> Causes:
        def does(kind: str, uri: str | None, of: str | None) -> bool:
            if kind == "missing" or flow["kind"] == "lazy":
                return True
            if flow["kind"] != "eager":
                return False
            if kind == "data":
                return self.starts(flow, (cast(str, uri), of), flow["mappers"][uri])
            if kind == "code" or uri not in flow["reads"]:
                return True
            mapper = flow["mappers"][uri]
            return not flow["by_key"] or any(
                self.starts(flow, each, mapper) for each in self.read(cast(str, uri), mapper, key)
            )

        return {cause: place for cause, place in self.causes(flow, key).items() if does(*cause)}

    def starts(self, flow: Json, item: Item, mapper: Any) -> bool:
        return not flow["by_key"] or (item[1] is not None and mapper == "identity")

    def inputs(self, flow: Json) -> Json:
        return {"code": flow["code"], "mappers": flow["mappers"], "place": self.place}

    def are_same(self, flow: Json, key: str | None, before: Json | None, after: Json) -> bool:
        if before is None or before["code"] != after["code"] or before["mappers"].keys() != after["mappers"].keys():
            return False
        place = before["place"]
        for uri, mapper in after["mappers"].items():
            if mapper != (earlier := before["mappers"][uri]) and {*self.read(uri, earlier, key, place)} != {
                *self.read(uri, mapper, key, place)
            }:
                return False
            for item in self.read(uri, mapper, key, after["place"]):
                if self.starts(flow, item, mapper) and self.version(item, place) != self.version(item, after["place"]):
                    return False
        return True

    def is_known(self, flow: Json, key: str | None, what: str) -> bool:
        return self.are_same(flow, key, self.target(flow, key)[what], self.inputs(flow))

    def has_failed_for_good(self, flow: Json) -> bool:
        return self.target(flow, None)["failures"] > flow["retries"] and self.is_known(flow, None, "tried")

    # Passes (8.5 to 8.7, 8.14)

    def verdicts(self, pulls: Pulls, *, over: bool) -> dict[Target, tuple[str, list[Any]]]:
        """Return what is to be said of each target, with what it would run for."""
        said: dict[Target, tuple[str, list[Any]]] = {}
        # The keys that come, each with the moment from which that was clear; of what is not asked for yet, never.
        coming: dict[str, dict[str | None, float]] = {}
        # What a flow reads has a name before its own.
        for name in sorted(self.flows):
            flow = self.flows[name]
            came = [(run["target"][1], run["started"]) for run in self.runs_of(flow)]
            for key in self.keys_of(flow) if flow["kind"] else ():
                said[name, key] = self.verdict(flow, key, coming, pulls.get(name), over=over)
                came += [(key, inf)] if said[name, key][0] in ("run", "waits") else []
            if flow["kind"] == "eager" and not flow["paused"]:
                came += [each for uri in flow["reads"] for each in self.follow(flow, uri, coming.get(uri, {}))]
            coming[name] = {key: min(at for of, at in came if of == key) for key, _ in came}
        return said

    def look(self, *, over: bool) -> None:
        pulls = self.pulls(over=over)
        retries = [key for key, each in self.targets.items() if self.is_over(each["again"], over=over)]
        if self.looked == (looked := (self.place, pulls, retries)):
            # Nothing has happened, and nothing is due: the same is to be said.
            return
        self.looked = looked
        for (name, key), (verdict, because) in self.verdicts(pulls, over=over).items():
            if verdict == "run":
                self.decided.append({"consumer": name, "key": key, "at": self.now, "because": because})
                self.begin(self.flows[name], key)

    def verdict(
        self, flow: Json, key: str | None, coming: Json, pull: Pull | None, *, over: bool
    ) -> tuple[str, list[Any]]:
        causes, record, is_lazy = self.counts(flow, key), self.target(flow, key), flow["kind"] == "lazy"
        because = [("freshness", uri, None) for uri in pull[1]] if is_lazy and pull is not None else [*causes]
        if any(run["target"] == (flow["name"], key) for run in self.runs_of(flow)):
            return "in_progress", because
        if is_lazy and pull is None:
            return "not_needed" if causes else "", because
        if not causes and not is_lazy:
            return "ignored" if self.causes(flow, key) else "", because
        if flow["paused"]:
            return "paused", because
        if not all(self.read(uri, flow["mappers"][uri], key) for uri in flow["reads"]):
            return "missing_input", because
        tried = self.tried(flow, key, record, over=over)
        since = pull[0] if is_lazy and pull is not None else max(flow["kept_since"], min(causes.values()))
        if tried and not is_lazy:
            return tried, because
        if any(self.waits(flow, key, uri, coming.get(uri, {}), since) for uri in flow["reads"]):
            return "waits", because
        if is_lazy and flow["reads"] and not causes:
            return "no_gain", because
        return tried or "run", because

    def tried(self, flow: Json, key: str | None, record: Json, *, over: bool) -> str:
        """Return what the inputs are that a target tried or waived before; "" for others."""
        if self.is_known(flow, key, "tried"):
            again = record["again"]
            if again is None or record["failures"] > flow["retries"]:
                # A policy that is due again asks for another run.
                return "tried" if flow["reads"] or flow["kind"] != "lazy" else ""
            return "" if self.is_over(again, over=over) else "retry"
        return "waived" if self.is_known(flow, key, "waived") else ""

    def is_over(self, moment: int | None, *, over: bool) -> bool:
        return moment is not None and (moment < self.now or (over and moment == self.now))

    def waits(self, flow: Json, key: str | None, uri: str, coming: dict[str | None, float], since: int) -> bool:
        """Return True if a target waits for a key of an input that comes, which has not ended a run since (8.6)."""
        maker = self.flows.get(uri)
        made = [each["at"] for each in self.of(uri) if each["key"] is not None and each["place"] >= since]
        is_enough = bool(made) and maker is not None and maker["by_key"] and not flow["by_key"]
        for of, at in coming.items():
            is_read = of in (key, None) if flow["mappers"][uri] == "identity" else of is None
            if flow["by_key"] and not is_read:
                continue
            if not flow["by_key"] and not self.would_read(flow, uri, of):
                continue
            if not (is_enough and at > made[0]) and self.record((uri, of))["ended"] < since:
                return True
        return False

    def would_read(self, flow: Json, uri: str, key: str | None) -> bool:
        mapper = flow["mappers"][uri]
        if mapper is None or "last" not in mapper or key is None:
            return True
        return key in sorted({*self.keys(uri), key} - {None}, key=str)[-mapper["last"] :]

    def follow(self, flow: Json, uri: str, coming: dict[str | None, float]) -> list[tuple[str | None, float]]:
        """Return the target keys that keys of an input will start, once they come."""
        if flow["by_key"]:
            is_read = flow["mappers"][uri] == "identity"
            return [(key, at) for key, at in coming.items() if is_read and key is not None]
        return [(None, at) for key, at in coming.items() if self.would_read(flow, uri, key)]

    # Runs

    def runs_of(self, flow: Json) -> list[Json]:
        return [run for run in self.going if run["flow"] == flow["name"]]

    def begin(self, flow: Json, key: str | None, *, by_hand: bool = False) -> Json:
        number = flow["begun"]
        flow["begun"] += 1
        run: Json = {"flow": flow["name"], "key": key, "ends": self.now + flow["takes"], "inputs": self.inputs(flow)}
        # Whatever a redeploy makes of the flow meanwhile (8.6).
        run |= {"started": self.now, "by_hand": by_hand, "target": self.which(flow, key)}
        run["outcome"] = flow["outcomes"][number] if number < len(flow["outcomes"]) else "completed"
        run["gives"] = flow["gives"][number] if number < len(flow["gives"]) else None
        self.going.append(run)
        self.next_place()
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
        flow, key, tried = self.flows[run["flow"]], run["key"], run["inputs"]
        record = self.record(run["target"])
        if completed := (outcome or run["outcome"]) == "completed":
            items = {
                each for uri, mapper in tried["mappers"].items() for each in self.read(uri, mapper, key, tried["place"])
            }
            version: Any = run["gives"]
            if version is None and tried["code"] is not None and items:
                version = (tried["code"], {item: self.version(item, tried["place"]) for item in items})
            made = {"read": tried["place"], "mappers": tried["mappers"], "code": tried["code"]}
            self.update((flow["name"], key), version, started=run["started"], **made)
            flow |= {"failed": None, "good": run["started"]}
            if not run["by_hand"]:
                flow["durations"].append(self.now - run["started"])
        again = record["failures"] > 0 and self.are_same(flow, key, record["tried"], tried)
        record["failures"] = 0 if completed else record["failures"] + 1 if again else 1
        repeats = not completed and flow["kind"] is not None and record["failures"] <= flow["retries"]
        record["again"] = self.now + RETRY_DELAY if repeats else None
        if not completed and not repeats and flow["kind"] is not None:
            flow["failed"] = run["started"]
        record |= {"tried": tried, "waived": None, "ended": self.next_place()}

    def update(self, item: Item, version: Any, **made: Any) -> None:
        place = self.next_place()
        row = {"uri": item[0], "key": item[1], "place": place, "at": self.now}
        self.updates.append(row | {"version": ("only", place) if version is None else version} | made)

    # Steps

    def deploy(self, name: str, given: Json) -> None:
        kind, options = next(iter((given["schedule"] or {None: {}}).items()))
        by_key = "partitioned" in options
        mappers = dict(options.get("partitioned", options).get("mappers", []))
        flow: Json = {"name": name, "kind": kind, "reads": given["reads"], "code": given.get("code_version")}
        flow |= {"mappers": {uri: mappers.get(uri) for uri in given["reads"]}, "by_key": by_key}
        flow |= {"retries": options.get("retries", 0), "takes": given["takes"], "outcomes": given["outcomes"]}
        flow |= {"gives": given["gives"][name], "policy": given.get("freshness", {}).get(name)}
        flow["catchup"] = options.get("catchup")
        place, before = self.next_place(), self.flows.get(name)
        if before is None:
            since = dict.fromkeys(("made_since", "kept_since", "code_since", "reads_since"), place)
            new: Json = {"paused": False, "begun": 0, "failed": None, "good": None, "durations": []}
            self.flows[name] = flow | since | new
            self.waive(self.flows[name], {})
            return
        owed = self.owed(before) if before["kind"] in ("eager", "on_missing") else {}
        if before["code"] != flow["code"]:
            before |= {"code_since": place, "failed": None}
        if before["reads"] != flow["reads"]:
            before["reads_since"] = place
        if before["kind"] != kind:
            before["kept_since"] = place
        before |= flow
        self.waive(before, owed)

    def owed(self, flow: Json) -> dict[str | None, bool]:
        found: dict[str | None, bool] = {}
        for key in self.keys_of(flow):
            is_tried = self.target(flow, key)["failures"] == 0 and self.is_known(flow, key, "tried")
            if self.counts(flow, key) and not is_tried:
                found[key] = not self.is_known(flow, key, "waived")
        return found

    def waive(self, flow: Json, before: dict[str | None, bool]) -> None:
        """Leave out what is out of date and `catchup` does not ask for; what was owed or waived before stays so."""
        if flow["kind"] not in ("eager", "on_missing") or flow["catchup"] == "all":
            return
        is_open = True
        for key in reversed(self.keys_of(flow)):
            known = self.is_known(flow, key, "tried") or self.is_known(flow, key, "waived")
            if before.get(key) or known or not self.counts(flow, key):
                continue
            runs = is_open and key not in before
            self.target(flow, key)["waived"] = None if runs else self.inputs(flow)
            is_open = is_open and not runs

    def redeploy(self, consumers: Json, step: Json) -> None:  # noqa: ARG002
        for name, given in consumers.items():
            self.deploy(name, given)

    def event(self, uri: str, step: Json) -> None:
        self.update((uri, step.get("partition_key")), step["data_version"])

    def observe(self, uri: str, step: Json) -> None:
        if self.version((uri, None)) != step["version"]:
            self.update((uri, None), step["version"])
        cast(Json, self.newest((uri, None)))["seen"] = self.now

    def run(self, name: str, step: Json) -> None:
        self.end(self.begin(self.flows[name], step.get("partition_key"), by_hand=True), "completed")

    def trigger(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.begin(self.flows[name], None, by_hand=True)

    def finish(self, name: str, step: Json) -> None:  # noqa: ARG002
        for run in self.runs_of(self.flows[name]):
            self.end(run, "completed")

    def retry(self, name: str, step: Json) -> None:  # noqa: ARG002
        flow = self.flows[name]
        for key in self.keys_of(flow):
            self.target(flow, key).update(tried=None, waived=None, failures=0, again=None)
        flow["failed"] = None

    def pause(self, name: str, step: Json) -> None:  # noqa: ARG002
        self.flows[name]["paused"] = True

    def resume(self, name: str, step: Json) -> None:  # noqa: ARG002
        flow = self.flows[name]
        if flow["paused"]:
            flow["paused"] = False
            self.waive(flow, {})

    def status(self, names: list[str], step: Json) -> None:  # noqa: ARG002
        behind: dict[Item, bool] = {}
        for name in sorted(self.flows):
            flow, keys = self.flows[name], self.keys(name)
            for key in keys | {None}:
                above = [
                    item
                    for uri in flow["reads"]
                    for item in self.read(uri, flow["mappers"][uri], key if flow["by_key"] else None)
                ]
                # An input that was never made has no item.
                behind[name, key] = bool(self.causes(flow, key)) or any(behind.get(each, False) for each in above)
            if flow["by_key"] or keys - {None}:
                states = Counter(self.state_of(flow, key) for key in {*keys, *self.keys_of(flow)} - {None})
                is_behind = any(behind[name, key] for key in keys - {None})
                self.statuses[name] = dict(states), is_behind or states["missing"] > 0
            else:
                self.statuses[name] = self.state_of(flow, None), behind[name, None]
        assert set(names) == {"r", "s", *self.flows}

    def state_of(self, flow: Json, key: str | None) -> str:
        return "missing" if self.made(flow, key) is None else "stale" if self.causes(flow, key) else "fresh"

    def advance(self, *_: Any) -> None: ...

    def freshness(self, *_: Any) -> None:
        self.ages = {name: self.age_of(name) for name, flow in self.flows.items() if flow["policy"] is not None}

    def plan(self, *_: Any) -> None:
        said = self.verdicts(self.pulls(over=True), over=True)
        self.planned = {target: verdict for target, (verdict, _) in said.items() if verdict}
        # A run by hand goes on, too, whatever its flow is.
        self.planned |= {(run["flow"], run["key"]): "in_progress" for run in self.going}
