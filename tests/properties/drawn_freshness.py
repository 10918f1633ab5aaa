"""Drawn scenarios of chapter 8; `python -m tests.properties.drawn_freshness FIRST LAST` prints their answers."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.properties.drawn import Json, print_answers, text

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
MAPPERS: list[Any] = [None, {"last": 1}, {"last": 2}, {"all_keys": {}}]
BY_KEY: list[Any] = ["identity", "identity", {"all_keys": {}}, {"last": 1}]
SECONDS = [0, 10, 60, 300]


def scenario(number: int) -> Json:
    """Return the scenario of a number: six to nine flows on two sources, of which each reads what is above it."""
    draw = Random(number)
    consumers: dict[str, Json] = {}
    for place in range(draw.randint(6, 9)):
        above = ["r", "s", *consumers]
        reads = draw.sample(above, min(len(above), draw.choice([0, 1, 1, 2, 3, 5])))
        consumers[f"f{place}"] = _flow(draw, f"f{place}", reads)
    now, steps = START, _first_keys() if draw.random() < 0.5 else []
    for _ in range(draw.randint(6, 14)):
        # Half of what happens comes at the instant of what came before it.
        now += timedelta(seconds=draw.choice([0, 0, 0, 10, 60, 300, 2000]))
        steps.append(_step(draw, consumers) | {"at": text(now)})
    last = text(now + timedelta(hours=3))
    looked_at = {"status": ["r", "s", *consumers], "freshness": True, "plan": True}
    steps += [{"advance": 0, "at": last}, *({what: of, "at": last} for what, of in looked_at.items())]
    return {"name": str(number), "passes": "timed", "start": text(START), "consumers": consumers, "steps": steps}


def _first_keys() -> list[Json]:
    return [
        {"event": uri, "data_version": "1", "partition_key": key, "at": text(START)} for uri in "rs" for key in KEYS[:2]
    ]


def _flow(draw: Random, name: str, reads: list[str]) -> Json:
    kind = draw.choice(["eager", "eager", "keys", "keys", "keys", "lazy", "on_missing", "plain"])
    found: Json = {"makes": [name], "reads": reads, "schedule": _schedule(draw, kind, reads)}
    found["takes"] = draw.choice(SECONDS)
    found["outcomes"] = draw.choice([[], [], ["failed"], ["completed", "failed"]])
    found["gives"] = {name: draw.choice([[], ["u"] * 9])}
    if draw.random() < 0.4:
        found["code_version"] = "1"
    if draw.random() < 0.4:
        found["freshness"] = {name: {"maximum_lag": draw.choice([600, 3600]), "warn_after": 300}}
    return found


def _schedule(draw: Random, kind: str, reads: list[str]) -> Any:
    options: Json = {} if kind == "lazy" else {"catchup": draw.choice(["all", "latest"])}
    options["retries"] = draw.choice([0, 0, 1])
    if kind == "plain":
        return None
    if kind == "keys":
        pairs = [[uri, draw.choice(BY_KEY)] for uri in reads]
        return {"eager": options | {"partitioned": {"mappers": pairs}}}
    if kind != "lazy":
        options["mappers"] = [[uri, mapper] for uri in reads if (mapper := draw.choice(MAPPERS)) is not None]
    return {kind: options}


def _step(draw: Random, consumers: dict[str, Json]) -> Json:
    name = draw.choice([*consumers])
    key = {"partition_key": draw.choice(KEYS)} if draw.random() < 0.6 else {}
    kinds = ["event"] * 4 + ["redeploy"] * 3 + ["observe", "run", "run", "trigger", "finish", "retry", "pause"]
    kind = draw.choice(kinds)
    if kind == "event":
        return {"event": draw.choice("rs"), "data_version": draw.choice("12")} | key
    if kind == "observe":
        return {"observe": draw.choice("rs"), "version": draw.choice("12")}
    if kind == "run":
        # A flow without partitions that writes keys.
        return {"run": name} | key
    if kind == "redeploy":
        return {"redeploy": {name: _redeployed(draw, consumers[name])}}
    if kind == "pause":
        return {draw.choice(["pause", "resume"]): name}
    return {kind: name}


def _redeployed(draw: Random, flow: Json) -> Json:
    """Return a flow with other mappers alone, with another code version, or without one of its inputs."""
    kind = draw.choice(["mappers", "code", "inputs", "inputs"])
    schedule = flow["schedule"]
    if kind == "code":
        return flow | {"code_version": "2"}
    if kind == "inputs":
        reads = [*dict.fromkeys([*flow["reads"][:-1], *draw.choice([[], ["r"], ["s"]])])]
        return flow | {"reads": reads, "schedule": draw.choice([None, _reading(reads, schedule)])}
    if schedule is None or "eager" not in schedule:
        return flow
    what = "partitioned" if "partitioned" in schedule["eager"] else "mappers"
    again = _schedule(draw, "keys" if what == "partitioned" else "eager", flow["reads"])
    return flow | {"schedule": {"eager": schedule["eager"] | {what: again["eager"][what]}}}


def _reading(reads: list[str], schedule: Any) -> Any:
    """Return a schedule with mappers for these inputs: those that it has, and keys of new ones map to themselves."""
    if schedule is None or "eager" not in schedule:
        return schedule
    options = schedule["eager"]
    if "partitioned" in options:
        known = dict.fromkeys(reads, "identity") | dict(options["partitioned"]["mappers"])
        return {"eager": options | {"partitioned": {"mappers": [[uri, known[uri]] for uri in reads]}}}
    return {"eager": options | {"mappers": [pair for pair in options["mappers"] if pair[0] in reads]}}


if __name__ == "__main__":
    print_answers(scenario)
