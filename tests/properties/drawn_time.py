"""Drawn scenarios of chapter 9; `python -m tests.properties.drawn_time FIRST LAST` prints their answers."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.properties.drawn import Json, print_answers, text

START = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)
ASSETS = ["a", "b", "c"]
KEYS = [None, None, None, "k", "l"]
MINUTES = [0, 0, 0, 1, 5, 10, 20, 25, 30, 60, 90]
SPANS = [300, 1200, 3600]
OPENS, CLOSES = ["0 */2 * * *", "30 */3 * * *"], [None, "0 1-23/2 * * *", "30 */2 * * *"]
SINGLE: list[Any] = ["a", {"any": ["a", "b"]}, {"any": ["a", "b", "c"]}]


def scenario(number: int) -> Json:
    """Return the scenario of a number: two consumers of three assets, and what happens to them in a day."""
    draw = Random(number)
    consumers = {name: _consumer(draw) for name in "xy"}
    deployed, now, steps = dict(consumers), START, list[Json]()
    for _ in range(draw.randint(8, 20)):
        now += timedelta(minutes=draw.choice(MINUTES))
        steps.append(_step(draw, deployed) | {"at": text(now)})
    steps.append({"advance": 0, "at": text(now + timedelta(days=1))})
    return {
        "name": str(number),
        "passes": "timed",
        "receipts": True,
        "start": text(START),
        "consumers": consumers,
        "steps": steps,
    }


def _consumer(draw: Random) -> Json:
    single = draw.random() < 0.3
    condition: Any = draw.choice(SINGLE) if single else _condition(draw, 2)
    schedule: Any = {"partitioned": {"assets": condition}} if (keys := draw.random() < 0.3) else condition
    if opens := draw.random() < 0.4:
        cron, until = draw.choice(OPENS), draw.choice(CLOSES)
        schedule = {"asset_and_time": {"cron": cron, "until": until, "assets": schedule}}
    found: Json = {"schedule": schedule, "while_paused": draw.choice(["drop", "keep"])}
    return found | _options(draw, single=single, at_time=opens and not keys)


def _options(draw: Random, *, single: bool, at_time: bool) -> Json:
    found: Json = {"coalesce": draw.random() < 0.25}
    if draw.random() < 0.3:
        found["cooldown"] = draw.choice(SPANS)
    if draw.random() < 0.3:
        found["debounce"] = draw.choice(SPANS[:2])
    if draw.random() < 0.3:
        found["min_events"] = draw.randint(1, 3)
    if ("debounce" in found or "min_events" in found) and draw.random() < 0.5:
        found["max_wait"] = draw.choice(SPANS[1:])
    if single and draw.random() < 0.5:
        found["max_events"] = draw.randint(found.get("min_events", 1), 4)
    if draw.random() < 0.35:
        due = draw.choice(["15 */2 * * *", "0 1-23/4 * * *"]) if at_time and draw.random() < 0.5 else draw.choice(SPANS)
        found |= {"deadline": due, "on_deadline": draw.choice(["alert", "run", "skip"])}
    return found


def _condition(draw: Random, depth: int) -> Any:
    """Return a condition that no single update satisfies, so that any time gate around it has an effect."""
    kind = draw.choice(["all", "times", "at_least", "within", "since", "any"] if depth else ["all", "times"])
    if kind == "times":
        return {"times": {"n": draw.randint(2, 3), "of": draw.choice(ASSETS)}}
    if kind == "within":
        return {"within": {"seconds": draw.choice([600, 1500, 2400]), "of": _condition(draw, depth - 1)}}
    if kind == "since":
        return {"since": {"cron": draw.choice(OPENS), "of": _condition(draw, depth - 1)}}
    members = draw.sample(ASSETS, draw.randint(2, 3))
    if kind == "any":
        return {"any": [_condition(draw, depth - 1) for _ in members[:2]]}
    if depth and draw.random() < 0.4:
        members[0] = _condition(draw, depth - 1)
    return {"at_least": {"n": 2, "of": members}} if kind == "at_least" else {"all": members}


def _step(draw: Random, deployed: dict[str, Json]) -> Json:
    kind = draw.choice(["event"] * 10 + ["task", "pause", "resume", "finish", "finish", "redeploy", "explain"])
    name = draw.choice("xy")
    key = {"partition_key": key} if (key := draw.choice(KEYS)) else {}
    if kind == "event":
        return {"event": draw.choice(ASSETS)} | key
    if kind == "task":
        return {"task": {"outlets": draw.sample(ASSETS, 2)} | key}
    if kind == "redeploy":
        # The same flow again, with other options, or another flow.
        again = draw.choice([deployed[name], _consumer(draw), _consumer(draw)])
        deployed[name] = again
        return {"redeploy": {name: again}}
    return {kind: name}


if __name__ == "__main__":
    print_answers(scenario)
