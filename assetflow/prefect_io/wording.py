"""A schedule in the words of an automation: a name that says it all in a line, a description with every URI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from assetflow.core.assets import Asset
from assetflow.core.conditions import Condition, Gate, Leaf, fold_condition
from assetflow.core.schedules import Schedule

NAME_LENGTH = 160
DESCRIPTION_LENGTH = 2000

# Line breaks, control characters, and those that turn the direction of text.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_URI = re.compile(r"([a-z][a-z0-9+.-]*://)(.*)/([^/]+)/?")


def automation_name(consumer: str, schedule: Schedule) -> str:
    """`report/daily runs when s3://…/orders AND s3://…/customers were updated`: unique, as the consumer's name is."""
    return f"{printable(consumer)} {short_sentence(schedule, NAME_LENGTH - len(consumer) - 1)}"


def short_sentence(schedule: Schedule, length: int = NAME_LENGTH) -> str:
    """`runs when s3://…/orders was updated`, shortened to about that many characters."""
    text = printable(_sentence(schedule, _short_labels(schedule)))
    if len(text) <= length:
        return text
    if schedule.condition is None:
        return f"{text[: length - 1]}…"
    end = f"…, of {len(schedule.tokens)} assets, {_verb(schedule)} updated"
    words = _words(schedule, _short_labels(schedule))[: max(length - len(f"{_when(schedule)}  {end}"), 20)]
    # A last word that was cut through is left out.
    condition = re.sub(r" (AND|OR|\S*)$", "", words)
    return printable(f"{_when(schedule)} {condition} {end}")


def automation_description(schedule: Schedule, *, who_decides: str) -> str:
    """The whole sentence, with full URIs, who decides, and what the switch does."""
    sentence = printable(_sentence(schedule, _full_label))
    if len(sentence) > DESCRIPTION_LENGTH:
        sentence = f"{sentence[:DESCRIPTION_LENGTH]}…"
    switch = "Switch it off to pause the schedule, on to resume it."
    return f"{sentence[0].upper()}{sentence[1:]}. {who_decides} decides this. {switch}"


def printable(text: str) -> str:
    """The text on one line, without characters that are not seen or that change how others are seen."""
    return _UNPRINTABLE.sub(" ", text).strip()


def short_uri(uri: str) -> str:
    """`s3://bucket/raw/orders` as `s3://…/orders`."""
    match = _URI.fullmatch(uri)
    return f"{match[1]}…/{match[3]}" if match else uri


def _sentence(schedule: Schedule, label: Callable[[Leaf], str]) -> str:
    times = schedule.timetable.describe() if schedule.timetable is not None and schedule.has_times else ""
    if not schedule.tokens:
        return f"runs {times}" if times else "never runs by itself: its list of assets is empty"
    updates = f"{_when(schedule)} {_words(schedule, label)} {_verb(schedule)} updated"
    return f"{updates}, and {times}" if times else updates


def _when(schedule: Schedule) -> str:
    return "runs for each partition key when" if schedule.is_partitioned else "runs when"


def _verb(schedule: Schedule) -> str:
    root = _condition(schedule).postfix[-1]
    return "were" if isinstance(root, Gate) and root.kind == "all" and root.arity > 1 else "was"


def _words(schedule: Schedule, label: Callable[[Leaf], str]) -> str:
    return fold_condition(_condition(schedule), label, _join)


def _condition(schedule: Schedule) -> Condition:
    assert schedule.condition is not None, "only schedules on assets have an automation"
    return schedule.condition


def _join(gate: Gate, parts: list[str]) -> str:
    parts = [part for part in parts if part]
    word = " AND " if gate.kind == "all" else " OR "
    if len(parts) < 2:
        return "".join(parts)
    return word.join(f"({part})" if " AND " in part or " OR " in part else part for part in parts)


def _short_labels(schedule: Schedule) -> Callable[[Leaf], str]:
    """Leaves in short; those that would look the same in short stay long."""
    leaves = {} if schedule.condition is None else {leaf.token: leaf for leaf in schedule.condition.leaves}
    shared = Counter(map(_short_label, leaves.values()))
    return lambda leaf: _short_label(leaf) if shared[_short_label(leaf)] == 1 else _full_label(leaf)


def _short_label(leaf: Leaf) -> str:
    return short_uri(leaf.label)


def _full_label(leaf: Leaf) -> str:
    if isinstance(leaf, Asset):
        return leaf.uri
    return leaf.label
