"""How gates are written: in words, as in `a AND (b OR c)`, and in Python."""

from __future__ import annotations

from datetime import timedelta

from assetflow.core.condition_tree import Gate
from assetflow.core.time.timetables import Timetable
from assetflow.core.time.wording import times_in_words
from assetflow.core.values.spans import span_in_words


def join_gate(gate: Gate, parts: list[str]) -> str:
    """Return a gate over its members in words: `a AND b`, `2 of: a, b, c`, `a 3 times`."""
    match gate.argument:
        case int(n) if gate.kind == "at_least":
            return f"{n} of: {', '.join(_grouped(part) for part in parts)}"
        case int(n):
            return f"{parts[0]} {n} times"
        case timedelta() as span:
            return f"{_grouped(parts[0])} within {span_in_words(span)} of each other"
        case Timetable() as timetable:
            return f"{_grouped(parts[0])} since {times_in_words(timetable)}"
        case None:
            return _join_all(gate, parts)


def _grouped(part: str) -> str:
    return f"({part})" if any(word in part for word in (" AND ", " OR ", " of: ", " within ", " since ")) else part


def _join_all(gate: Gate, parts: list[str]) -> str:
    word = " AND " if gate.kind == "all" else " OR "
    if not parts:
        return "always" if gate.kind == "all" else "never"
    if len(parts) == 1:
        return parts[0]
    return word.join(map(_grouped, parts))


def gate_in_python(gate: Gate, parts: list[str]) -> str:
    """Return a gate over its members as `repr` shows it: `AssetAll(a, b)`, `a.times(3)`."""
    match gate.kind:
        case "all":
            return f"AssetAll({', '.join(parts)})"
        case "any":
            return f"AssetAny({', '.join(parts)})"
        case "at_least":
            return f"AtLeast({', '.join((str(gate.argument), *parts))})"
        case _:
            return f"{parts[0]}.{gate.kind}({gate.argument!r})"
