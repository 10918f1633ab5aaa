"""A naive model of chapter 9: it goes through every minute of a scenario and looks at everything, as the rules say it.

It is written from the rules and shares nothing with the code. All instants of `drawn_time` are whole minutes.
"""

from datetime import UTC, datetime
from functools import cache
from typing import Any

Json = dict[str, Any]
DAY = 24 * 60


@cache
def minute_of(text: str) -> int:
    return round((datetime.fromisoformat(text) - datetime(2026, 1, 1, tzinfo=UTC)).total_seconds() / 60)


@cache
def is_time(cron: str | None, minute: int) -> bool:
    """Return True if a cron of the drawn scenarios, such as `30 1-23/2 * * *`, names this minute."""
    if cron is None:
        return False
    at, hours, *_ = cron.split()
    first_to_last, _, every = hours.partition("/")
    first, last = (0, 23) if first_to_last == "*" else map(int, first_to_last.split("-"))
    return minute % 60 == int(at) and minute // 60 % 24 in range(first, last + 1, int(every))


@cache
def time_after(cron: str, minute: int) -> int:
    return next(each for each in range(minute + 1, minute + 2 * DAY) if is_time(cron, each))


# Conditions (9.1 to 9.5). A queue is a list of events with `uri` and `at`, in the order of the ledger.


def holds(condition: Any, queue: list[Json]) -> bool:
    if isinstance(condition, str):
        return any(event["uri"] == condition for event in queue)
    ((kind, inner),) = condition.items()
    if kind == "all":
        return all(holds(each, queue) for each in inner)
    if kind == "any":
        return any(holds(each, queue) for each in inner)
    if kind == "at_least":
        return sum(holds(each, queue) for each in inner["of"]) >= inner["n"]
    if kind == "times":
        return sum(event["uri"] == inner["of"] for event in queue) >= inner["n"]
    return any(holds(inner["of"], [each for each in queue if in_stretch(kind, inner, of, each)]) for of in queue)


def in_stretch(kind: str, gate: Json, first: Json, event: Json) -> bool:
    """Return True if an event lies in the stretch of a gate that begins with another one, or in its period."""
    end = first["at"] + gate["seconds"] // 60 if kind == "within" else time_after(gate["cron"], first["at"]) - 1
    return first["at"] <= event["at"] <= end


def leaves(condition: Any, gates: tuple[Any, ...] = ()) -> list[tuple[str, tuple[Any, ...]]]:
    if isinstance(condition, str):
        return [(condition, gates)]
    ((kind, inner),) = condition.items()
    if kind in ("within", "since"):
        return leaves(inner["of"], (*gates, condition))
    members = inner if isinstance(inner, list) else inner["of"]
    return [leaf for each in (members if isinstance(members, list) else [members]) for leaf in leaves(each, gates)]


class NaiveTime:
    """Carries out a scenario; each kind of step is a method of its name."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.consumers: dict[str, Json] = {}
        self.receipts: list[Json] = []
        self.runs: list[Json] = []
        self.missed: list[Json] = []
        self.events = self.now = 0

    def answer(self) -> Json:
        self.now = first = minute_of(self.scenario["start"])
        for name, consumer in self.scenario["consumers"].items():
            self.deploy(name, consumer)
        for minute in range(first, minute_of(self.scenario["steps"][-1]["at"]) + 1):
            self.now = minute
            for consumer in self.consumers.values():
                self.periods_end(consumer)
            for number, step in enumerate(self.scenario["steps"]):
                if minute_of(step["at"]) == minute:
                    kind, what = next(iter(step.items()))
                    getattr(self, kind)(what, number, step)
                    self.everybody(over=False)
            for consumer in self.consumers.values():
                self.instant_ends(consumer)
        return {"runs": self.runs, "missed": self.missed, "receipts": self.receipts}

    # One instant, in the order of 9.6

    def periods_end(self, consumer: Json) -> None:
        if is_time(consumer["until"], self.now):
            consumer |= {"open": None, "ended": True}
        self.expire(consumer, self.now - 0.5)

    def instant_ends(self, consumer: Json) -> None:
        if is_time(consumer["opens"], self.now):
            if consumer["paused"]:
                consumer |= {"passed": self.now, "ended": False}
            elif consumer["resumed"] != self.now:
                self.open(consumer, self.now)
        self.decide(consumer, over=True)
        self.miss_openings(consumer)
        self.decide(consumer, over=True)
        while self.miss_oldest(consumer) or self.expire(consumer, self.now):
            self.decide(consumer, over=True)

    # Opening hours (9.7, 9.13)

    def open(self, consumer: Json, opened: int) -> None:
        consumer |= {"open": opened, "opened": opened, "closed": set(), "passed": None}
        due = self.due_of_opening(consumer)
        if due is not None and due > self.now:
            consumer["due"].add(due)

    def due_of_opening(self, consumer: Json) -> int | None:
        deadline = consumer["deadline"]
        if deadline is None or consumer["opens"] is None or consumer["keys"] or consumer["opened"] is None:
            return None
        opened, until = consumer["opened"], consumer["until"]
        due = time_after(deadline, opened) if isinstance(deadline, str) else opened + deadline
        return due if until is None else min(due, time_after(until, opened))

    # Deadlines, as 9.8 has them

    def miss_openings(self, consumer: Json) -> None:
        for due in sorted(each for each in consumer["due"] if each <= self.now and not consumer["paused"]):
            if due in consumer["due"]:
                consumer["due"].remove(due)
                self.miss(consumer, None, due)

    def miss_oldest(self, consumer: Json) -> bool:
        deadline, missed = consumer["deadline"], False
        if deadline is None or consumer["paused"] or (consumer["opens"] is not None and not consumer["keys"]):
            return False
        for key in self.keys(consumer):
            oldest = self.queue(consumer, key)[0]
            if oldest["at"] + deadline <= self.now and oldest["event"] not in consumer["told"]:
                consumer["told"].add(oldest["event"])
                self.miss(consumer, key, oldest["at"] + deadline)
                missed = True
        return missed

    def miss(self, consumer: Json, key: Any, due: int) -> None:
        queue = self.queue(consumer, key)
        then = consumer["then"]
        row = {"consumer": consumer["name"], "key": key, "due": due, "at": self.now, "then": then, "queued": len(queue)}
        self.missed.append(row)
        if then == "run" and queue:
            consumer["overdue"].add(key)
        if then == "skip":
            for event in queue:
                event |= {"status": "skipped", "until": self.now}
            consumer["closed"].add(key)
            consumer["due"].clear()

    # Expiry, as 9.5 has it

    def expire(self, consumer: Json, moment: float) -> bool:
        expired = False
        for key in self.keys(consumer):
            queue = self.queue(consumer, key)
            for event in queue:
                moments = [
                    [self.too_old(gate, event) for gate in gates if not holds(gate, queue)]
                    for uri, gates in consumer["leaves"]
                    if uri == event["uri"]
                ]
                if all(moments) and max(map(min, moments)) <= moment:
                    event |= {"status": "expired", "until": self.now}
                    expired = True
        return expired

    def too_old(self, gate: Any, event: Json) -> float:
        """Return the minute with whose end an event is too old for a gate; a period ends before its minute begins."""
        ((kind, inner),) = gate.items()
        if kind == "within":
            return event["at"] + inner["seconds"] // 60
        return time_after(inner["cron"], event["at"]) - 0.5

    # Decisions (4.2, 4.7, 9.6 to 9.12)

    def everybody(self, *, over: bool) -> None:
        for consumer in self.consumers.values():
            self.decide(consumer, over=over)

    def decide(self, consumer: Json, *, over: bool) -> None:
        for key in self.keys(consumer):
            decided = False
            while self.is_ready(consumer, key, over=over):
                self.run_now(consumer, key)
                decided = True
            if decided:
                consumer["closed"].add(key)
                consumer["due"].clear()

    def is_ready(self, consumer: Json, key: Any, *, over: bool) -> bool:
        queue = self.queue(consumer, key)
        # What waits until this minute waits while recordings of this minute come (9.6).
        latest = self.now if over else self.now - 1
        if not queue or consumer["paused"]:
            return False
        if consumer["cooldown"] and key in consumer["last"] and consumer["last"][key] + consumer["cooldown"] > latest:
            return False
        if consumer["coalesce"] and key in consumer["busy"]:
            return False
        if key in consumer["overdue"]:
            return True
        if consumer["opens"] is not None and (consumer["open"] is None or key in consumer["closed"]):
            return False
        enough = [size for size in range(1, len(queue) + 1) if holds(consumer["condition"], queue[:size])]
        if not enough:
            return False
        if consumer["max_wait"] and queue[enough[0] - 1]["at"] + consumer["max_wait"] <= latest:
            return True
        if consumer["debounce"] and queue[-1]["at"] + consumer["debounce"] > latest:
            return False
        return len(queue) >= consumer["min_events"]

    def run_now(self, consumer: Json, key: Any) -> None:
        overdue = key in consumer["overdue"]
        if not overdue:
            self.expire(consumer, self.now - 1)
        events = self.queue(consumer, key)[: consumer["max_events"]]
        for event in events:
            event["status"] = "consumed"
        consumer["overdue"].discard(key)
        consumer["busy"].add(key)
        consumer["last"][key] = self.now
        time = consumer["opened"] if consumer["opens"] is not None else None
        found = [(event["uri"], event["step"]) for event in events]
        row = {"consumer": consumer["name"], "key": key, "at": self.now, "time": time, "overdue": overdue}
        self.runs.append(row | {"events": found})

    # Queues

    def queue(self, consumer: Json, key: Any) -> list[Json]:
        return [each for each in self.queued(consumer) if each["key"] == key]

    def queued(self, consumer: Json) -> list[Json]:
        return [each for each in self.receipts if (each["consumer"], each["status"]) == (consumer["name"], "queued")]

    def keys(self, consumer: Json) -> list[Any]:
        found = {each["key"] for each in self.queued(consumer)}
        # With nothing queued, nothing is overdue (9.8).
        consumer["overdue"] &= found
        return sorted(found, key=str)

    # Steps

    def deploy(self, name: str, given: Json) -> None:
        schedule, opens, until = given["schedule"], None, None
        if isinstance(schedule, dict) and "asset_and_time" in schedule:
            hours = schedule["asset_and_time"]
            schedule, opens, until = hours["assets"], hours["cron"], hours["until"]
        keys = isinstance(schedule, dict) and "partitioned" in schedule
        condition = schedule["partitioned"]["assets"] if keys else schedule
        minutes = {each: given.get(each, 0) // 60 for each in ("cooldown", "debounce", "max_wait")}
        deadline = given.get("deadline")
        new: Json = minutes | {
            "name": name,
            "condition": condition,
            "leaves": leaves(condition),
            "keys": keys,
            "opens": opens,
            "until": until,
            "keep": given["while_paused"] == "keep",
            "coalesce": given["coalesce"],
            "min_events": given.get("min_events", 1),
            "max_events": given.get("max_events"),
            "deadline": deadline if deadline is None or isinstance(deadline, str) else deadline // 60,
            "then": given.get("on_deadline"),
        }
        closed: Json = {"open": None, "opened": None, "passed": None, "ended": False, "closed": set(), "due": set()}
        before = self.consumers.get(name)
        if before is None:
            fresh: Json = {"paused": False, "resumed": None, "overdue": set(), "told": set(), "busy": set(), "last": {}}
            self.consumers[name] = new | closed | fresh
            return
        other_deadline = (before["deadline"], before["keys"]) != (new["deadline"], keys)
        other_times = (before["opens"], before["until"]) != (opens, until)
        before |= new | (closed if other_times else {})
        if other_deadline and not other_times:
            due = self.due_of_opening(before)
            is_open = before["open"] is not None and None not in before["closed"]
            before["due"] = {due} if due is not None and is_open else set()
        if new["then"] != "run":
            before["overdue"].clear()
        for event in self.queued(before):
            if event["uri"] not in dict(leaves(condition)) or (event["key"] is not None) != keys:
                event["status"] = "superseded"

    def redeploy(self, consumers: Json, number: int, step: Json) -> None:  # noqa: ARG002
        for name, given in consumers.items():
            self.deploy(name, given)

    def event(self, uri: str, number: int, step: Json) -> None:
        self.record([uri], number, step.get("partition_key"))

    def task(self, task: Json, number: int, step: Json) -> None:  # noqa: ARG002
        self.record(task["outlets"], number, task.get("partition_key"))

    def record(self, uris: list[str], number: int, key: Any) -> None:
        for uri in uris:
            self.events += 1
            row: Json = {"event": self.events, "uri": uri, "step": number, "at": self.now, "key": None}
            wanting = [each for each in self.consumers.values() if uri in dict(leaves(each["condition"]))]
            for consumer in wanting:
                status = "queued"
                if (key is not None) != consumer["keys"]:
                    status = "not_for_consumer"
                elif consumer["paused"] and not consumer["keep"]:
                    status = "dropped"
                target = key if status == "queued" else None
                self.receipts.append(row | {"consumer": consumer["name"], "status": status, "key": target})
            if not wanting:
                self.receipts.append(row | {"consumer": None, "status": "no_consumer"})

    def pause(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        self.consumers[name]["paused"] = True

    def resume(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        consumer = self.consumers[name]
        if not consumer["paused"]:
            return
        consumer |= {"paused": False, "resumed": self.now}
        consumer["due"] = {due for due in consumer["due"] if due > self.now}
        if is_time(consumer["opens"], self.now):
            consumer |= {"passed": self.now, "ended": False}
        if (latest := consumer["passed"]) is not None and consumer["ended"]:
            # It was opened and closed in the pause.
            consumer |= {"opened": latest, "closed": set(), "passed": None}
        elif latest is not None:
            self.open(consumer, latest)

    def finish(self, name: str, number: int, step: Json) -> None:  # noqa: ARG002
        self.consumers[name]["busy"].clear()

    def explain(self, *_: Any) -> None: ...

    def advance(self, *_: Any) -> None: ...
