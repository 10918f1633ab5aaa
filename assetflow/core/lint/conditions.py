"""Checks of one schedule: a condition that can never hold, a useless branch of an OR, a wait without an end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import cast

from assetflow.core.lint.findings import Finding, SeenFlow
from assetflow.core.values.conditions import Condition, Gate, Leaf, fold_condition

# Larger conditions are made by a program, and comparing all their branches takes long.
MOST_NODES = 300


def check_condition(flow: SeenFlow) -> Iterator[Finding]:
    """Find a condition that can never hold, or branches of an OR that change nothing."""
    condition = flow.declaration.options.schedule.condition
    if condition is None:
        return
    can_hold = fold_condition(condition, lambda _: True, lambda gate, members: sum(members) >= _needed(gate))
    if not can_hold or not condition.tokens:
        message = "its condition can never hold: a part of it names no asset"
        yield flow.finding("AF006", message, "Name assets that somebody updates")
    if len(condition.postfix) <= MOST_NODES:
        for useless, other in useless_branches(condition):
            yield flow.finding(
                "AF007",
                f"in an OR, {useless.describe()} changes nothing: {other.describe()} holds whenever it does",
                "Leave it out, or write & where both are needed",
            )


def useless_branches(condition: Condition) -> Iterator[tuple[Condition, Condition]]:
    """Yield the branches of ORs that imply another branch, each with that one."""
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        members = cast("tuple[Condition, ...]", tuple(node.members))
        waiting += members
        if node.gate is None or node.gate.kind != "any":
            continue
        for place, branch in enumerate(members):
            # Of two that imply each other, the later one is useless.
            others = (*members[:place], *(each for each in members[place + 1 :] if not implies(each, branch)))
            if (other := next((each for each in others if implies(branch, each)), None)) is not None:
                yield branch, other


def implies(one: Condition, other: Condition) -> bool:
    """Return True if the second condition certainly holds whenever the first one does."""
    if one == other or (isinstance(one, Leaf) and isinstance(other, Leaf) and one.token == other.token):
        return True
    gate = other.gate
    if gate is not None and not gate.is_time_gate and gate.kind != "times":
        held = sum(implies(one, cast("Condition", member)) for member in other.members)
        if held >= _needed(gate):
            return True
    return _follows_from_members(one, other)


def _follows_from_members(one: Condition, other: Condition) -> bool:
    gate, members = one.gate, cast("tuple[Condition, ...]", tuple(one.members))
    if gate is None or not members:
        return False
    if gate.kind == "all":
        return any(implies(member, other) for member in members)
    if gate.kind in ("any", "at_least"):
        return all(implies(member, other) for member in members)
    if other.gate is not None and other.gate.kind == gate.kind and gate.kind in ("times", "within"):
        wider = cast("int", other.gate.argument) <= cast("int", gate.argument)
        if gate.kind == "within":
            wider = cast("timedelta", gate.argument) <= cast("timedelta", other.gate.argument)
        return wider and implies(members[0], cast("Condition", other.members[0]))
    # What holds within a stretch of time, or several times, also holds without that.
    return implies(members[0], other)


def _needed(gate: Gate) -> int:
    return {"all": gate.arity, "at_least": cast("int", gate.argument)}.get(gate.kind, 1)


def check_waits(flow: SeenFlow) -> Iterator[Finding]:
    """Find a wait for more updates that may go on for ever."""
    intake, deadline = flow.declaration.options.intake, flow.declaration.options.deadline
    if intake.waits_for_more and intake.max_wait is None and (deadline is None or deadline.then == "alert"):
        what = "debounce waits as long as updates keep coming" if intake.debounce else "min_events waits for ever"
        message = f"{what}, and no max_wait ends the wait"
        yield flow.finding("AF014", message, "Give max_wait, or a deadline with on_deadline")
