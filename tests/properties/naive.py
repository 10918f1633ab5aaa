"""A naive model of the contract: lists that are scanned in full, written from the rules and not from the code.

It understands the part of the scenario format that `scenarios.py` draws: plain, alias and reference leaves, identity,
fixed and segment fan-out mappers, passes at ticks or after every step.
"""

from typing import Any

Json = dict[str, Any]


class Naive:
    """Carries out a scenario; each kind of step is a method of its name."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.consumers: dict[str, Json] = {}
        self.events: list[Json] = []
        self.names: dict[str, str] = {}
        self.links: set[tuple[str, str]] = set()
        self.receipts: list[Json] = []
        self.runs: list[Json] = []
        self.ids: set[str] = set()
        self.lives = 0

    def answer(self) -> Json:
        for name, consumer in self.scenario["consumers"].items():
            self.deploy(name, consumer)
        for number, step in enumerate(self.scenario["steps"]):
            ((kind, what), *_) = step.items()
            getattr(self, kind)(what, number, step)
            if kind == "tick" or self.scenario["passes"] == "live":
                self.everybody(number)
        waiting = [r for r in self.receipts if r["status"] == "queued" and r["life"] in self.lives_now()]
        return {
            "runs": sorted(self.runs, key=lambda r: (r["step"], r["consumer"], r["key"] or "")),
            "waiting": sorted((r["consumer"], r["key"] or "", r["event"]) for r in waiting),
            "receipts": sorted(
                (r["event"], r["consumer"] or "", r["key"] or "", r["status"], r.get("step")) for r in self.receipts
            ),
        }

    def lives_now(self) -> set[int]:
        return {c["life"] for c in self.consumers.values()}

    # Schedules

    def deploy(self, name: str, written: Any) -> None:
        options = written if isinstance(written, dict) and "schedule" in written else {"schedule": written}
        schedule = options["schedule"]
        new = {
            "mapper": None,
            "expr": schedule,
            "keep": options.get("while_paused") == "keep",
            "coalesce": options.get("coalesce", False),
        }
        if isinstance(schedule, dict) and "partitioned" in schedule:
            new["expr"] = schedule["partitioned"]["assets"]
            new["mapper"] = schedule["partitioned"].get("default_mapper", "identity")
        for uri in uris_in(new["expr"]):
            self.names.setdefault(uri, uri)
        if name not in self.consumers:
            self.lives += 1
            self.consumers[name] = new | {
                "paused": options.get("paused", False),
                "life": self.lives,
                "busy": set(),
                "name": name,
            }
            return
        consumer = self.consumers[name]
        consumer.update(new)
        self.requeue(consumer)

    def requeue(self, consumer: Json) -> None:
        mine = [r for r in self.receipts if r["life"] == consumer["life"]]
        for event in sorted({r["event"] for r in mine if r["status"] == "queued"}):
            queued = [r for r in mine if r["event"] == event and r["status"] == "queued"]
            data = self.events[event - 1]
            if not self.wants(consumer, data["uri"]) or (data["key"] is not None) != (consumer["mapper"] is not None):
                for receipt in queued:
                    receipt["status"] = "superseded"
            elif consumer["mapper"] is not None:
                for receipt in queued:
                    self.receipts.remove(receipt)
                for target in self.targets(consumer, data):
                    gone = [
                        r
                        for r in mine
                        if r["event"] == event and r["key"] == target and r["status"] in ("consumed", "removed")
                    ]
                    if not gone:
                        self.receipts.append(queued[0] | {"key": target})

    def targets(self, consumer: Json, event: Json) -> list[str | None]:
        mapper = consumer["mapper"]
        if mapper is None:
            return [None]
        if mapper == "identity":
            return [event["key"]]
        return [mapper["fixed"]] if "fixed" in mapper else mapper["fanout"]["window"]["segments"]

    def wants(self, consumer: Json, uri: str) -> bool:
        return any(self.fits(leaf, uri) for leaf in leaves_of(consumer["expr"]))

    def fits(self, leaf: Any, uri: str) -> bool:
        if isinstance(leaf, str):
            return leaf == uri
        if "alias" in leaf:
            return (leaf["alias"], uri) in self.links
        reference = leaf["ref"]
        return reference["uri"] == uri if "uri" in reference else self.names.get(reference["name"]) == uri

    # Steps

    def record(self, uri: str, number: int, *, name: str | None = None, key: Any = None, aliases: Any = ()) -> None:
        self.names.setdefault(name or uri, uri)
        self.links |= {(alias, uri) for alias in aliases}
        self.events.append({"uri": uri, "key": key, "step": number})
        place = len(self.events)
        wanted = False
        for consumer in self.consumers.values():
            if not self.wants(consumer, uri):
                continue
            wanted = True
            receipt: Json = {"event": place, "consumer": consumer["name"], "life": consumer["life"], "key": None}
            if (key is not None) != (consumer["mapper"] is not None):
                receipt["status"] = "not_for_consumer"
            elif consumer["paused"] and not consumer["keep"]:
                receipt["status"] = "dropped"
            else:
                targets = self.targets(consumer, self.events[-1])
                self.receipts += [receipt | {"status": "queued", "key": target} for target in targets]
                continue
            self.receipts.append(receipt)
        if not wanted:
            self.receipts.append({"event": place, "consumer": None, "life": 0, "key": None, "status": "no_consumer"})

    def event(self, asset: Any, number: int, step: Json) -> None:
        if "id" in step:
            if step["id"] in self.ids:
                return
            self.ids.add(step["id"])
        given = asset if isinstance(asset, dict) else {"uri": asset}
        self.record(
            given["uri"], number, name=given.get("name"), key=step.get("partition_key"), aliases=step.get("aliases", ())
        )

    def task(self, task: Json, number: int, step: Json) -> None:  # noqa: ARG002
        for uri in dict.fromkeys(task["outlets"]):
            self.names.setdefault(uri, uri)
        if task.get("state", "completed") == "completed":
            for uri in dict.fromkeys(task["outlets"]):
                self.record(uri, number, key=task.get("partition_key"))

    def tick(self, what: Any, number: int, step: Json) -> None:
        pass

    def pause(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        if name in self.consumers:
            self.consumers[name]["paused"] = True

    def resume(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        if name in self.consumers:
            self.consumers[name]["paused"] = False

    def redeploy(self, consumers: Json, number: int, step: Json) -> None:  # noqa: ARG002
        for name, consumer in consumers.items():
            self.deploy(name, consumer)

    def remove(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        if name in self.consumers:
            life = self.consumers.pop(name)["life"]
            for receipt in self.receipts:
                if receipt["life"] == life and receipt["status"] == "queued":
                    receipt["status"] = "superseded"

    def finish(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        if name in self.consumers:
            self.consumers[name]["busy"] = set()

    def delete_queued(self, chosen: Json, number: int, step: Json) -> None:  # noqa: ARG002
        if chosen.get("consumer", "") and chosen["consumer"] not in self.consumers:
            return
        if "asset" in chosen:
            self.names.setdefault(chosen["asset"], chosen["asset"])
        for receipt in self.receipts:
            if receipt["status"] != "queued" or receipt["life"] not in self.lives_now():
                continue
            if receipt["key"] != chosen.get("partition_key"):
                continue
            if chosen.get("consumer", receipt["consumer"]) != receipt["consumer"]:
                continue
            uri = self.events[receipt["event"] - 1]["uri"]
            if chosen.get("asset", uri) == uri:
                receipt["status"] = "removed"

    # Passes

    def everybody(self, number: int) -> None:
        for consumer in self.consumers.values():
            if consumer["paused"]:
                continue
            mine = [r for r in self.receipts if r["life"] == consumer["life"] and r["status"] == "queued"]
            for key in sorted({r["key"] for r in mine}, key=str):
                if consumer["coalesce"] and key in consumer["busy"]:
                    continue
                queue = sorted((r for r in mine if r["key"] == key), key=lambda r: r["event"])
                uris = {self.events[r["event"] - 1]["uri"] for r in queue}
                if self.true(consumer["expr"], uris):
                    consumer["busy"].add(key)
                    for receipt in queue:
                        receipt |= {"status": "consumed", "step": number}
                    events = [r["event"] for r in queue]
                    self.runs.append({"step": number, "consumer": consumer["name"], "key": key, "events": events})

    def true(self, expression: Any, uris: set[str]) -> bool:
        if isinstance(expression, dict) and "all" in expression:
            return all(self.true(member, uris) for member in expression["all"])
        if isinstance(expression, dict) and "any" in expression:
            return any(self.true(member, uris) for member in expression["any"])
        return any(self.fits(expression, uri) for uri in uris)


def leaves_of(expression: Any) -> list[Any]:
    if isinstance(expression, dict) and ("all" in expression or "any" in expression):
        (members,) = expression.values()
        return [leaf for member in members for leaf in leaves_of(member)]
    return [expression]


def uris_in(expression: Any) -> list[str]:
    return [leaf for leaf in leaves_of(expression) if isinstance(leaf, str)]
