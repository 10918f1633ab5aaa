"""The texts of an automation: a name that tells the schedule in one line, and a description with every URI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from uuid import UUID

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Condition, Gate, Leaf, fold_condition, join_gate
from assetflow.core.values.consumers import Automation, Consumer
from assetflow.core.values.schedules import ConsumerOptions, Schedule

NAME_LENGTH = 160
DESCRIPTION_LENGTH = 2000

# Line breaks, control characters, and characters that change the direction of text.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_URI = re.compile(r"([a-z][a-z0-9+.-]*://)(.*)/([^/]+)/?")


def automation_name(consumer: str, options: ConsumerOptions) -> str:
    """Return a name such as `report/daily runs when s3://…/orders was updated`, unique like the consumer's name."""
    return f"{printable(consumer)} {short_sentence(options, NAME_LENGTH - len(consumer) - 1)}"


def shown_by(automation_id: UUID | None, consumer: Consumer | None) -> Automation | None:
    """Return the automation that shows the schedule of a consumer, or `None` if there is none."""
    if automation_id is None or consumer is None:
        return None
    return Automation(automation_id, automation_name(consumer.name, consumer.options))


def short_sentence(options: ConsumerOptions, length: int = NAME_LENGTH) -> str:
    """Return `runs when s3://…/orders was updated`, shortened to about `length` characters.

    Intake and deadline are the first to be left out; `automation_description` has them.
    """
    schedule = options.schedule
    text = printable(_sentence(schedule, _short_labels(schedule)))
    full = f"{text}{_timing(options)}"
    if len(full) <= length:
        return full
    if len(text) <= length:
        return text
    if schedule.condition is None:
        return f"{text[: length - 1]}…"
    end = f"…, of {len(schedule.tokens)} assets, {_verb(schedule)} updated"
    words = _words(schedule, _short_labels(schedule))[: max(length - len(f"{_when(schedule)}  {end}"), 20)]
    # Drop a last word that was cut.
    condition = re.sub(r" (AND|OR|\S*)$", "", words)
    return printable(f"{_when(schedule)} {condition} {end}")


def automation_description(options: ConsumerOptions) -> str:
    """Return the whole sentence, with full URIs, who decides, and what the switch does."""
    sentence = printable(_sentence(options.schedule, _full_label))
    if len(sentence) > DESCRIPTION_LENGTH:
        sentence = f"{sentence[:DESCRIPTION_LENGTH]}…"
    sentence += _timing(options)
    switch = "Switch it off to pause the schedule, on to resume it."
    return f"{sentence[0].upper()}{sentence[1:]}. The evaluator of assetflow decides this. {switch}"


def refusal_name(consumer: str) -> str:
    """Return the name of the automation of a deployment that is refused, and had no schedule before."""
    return f"{printable(consumer)} is refused"


def refusal_description(why: str, then: str) -> str:
    """Return why a deployment is refused, and what runs meanwhile."""
    return f"Refused: {printable(why)[:DESCRIPTION_LENGTH]}. {then}"


def printable(text: str) -> str:
    """Return the text on one line, without invisible characters and those that change how others look."""
    return _UNPRINTABLE.sub(" ", text).strip()


def _sentence(schedule: Schedule, label: Callable[[Leaf], str]) -> str:
    if schedule.keeping is not None:
        by_key = " for each partition key" if schedule.is_partitioned else ""
        return f"runs{by_key} {schedule.keeping.describe()}"
    times = schedule.timetable.describe() if schedule.timetable is not None and schedule.has_times else ""
    if not schedule.tokens:
        return f"runs {times}" if times else "never runs by itself: its list of assets is empty"
    updates = f"{_when(schedule)} {_words(schedule, label)} {_verb(schedule)} updated"
    return f"{updates}, and {times}" if times else updates


def _timing(options: ConsumerOptions) -> str:
    """Return intake and deadline as the end of the sentence: "; debounce 10 min; at 08:00 with what is there"."""
    return "".join(f"; {part}" for part in options.timing_in_words)


def _when(schedule: Schedule) -> str:
    runs = "runs for each partition key" if schedule.is_partitioned else "runs"
    return f"{runs} when" if schedule.opening is None else f"{runs} {schedule.opening.describe()} when"


def _verb(schedule: Schedule) -> str:
    root = next(
        (node for node in reversed(_condition(schedule).postfix) if not (isinstance(node, Gate) and node.is_time_gate)),
        None,
    )
    several = isinstance(root, Gate) and (root.kind == "at_least" or (root.kind == "all" and root.arity > 1))
    return "were" if several else "was"


def _words(schedule: Schedule, label: Callable[[Leaf], str]) -> str:
    return fold_condition(_condition(schedule), label, _join)


def _condition(schedule: Schedule) -> Condition:
    assert schedule.condition is not None, "only schedules on assets have an automation"
    return schedule.condition


def _join(gate: Gate, parts: list[str]) -> str:
    """Return a gate over its members in words. Of AND and OR, members without assets are left out."""
    if gate.kind not in ("all", "any"):
        return join_gate(gate, [part or "nothing" for part in parts])
    parts = [part for part in parts if part]
    return join_gate(gate, parts) if parts else ""


def _short_labels(schedule: Schedule) -> Callable[[Leaf], str]:
    """Return a function that shortens leaves, except those that would look the same."""
    leaves = {} if schedule.condition is None else {leaf.token: leaf for leaf in schedule.condition.leaves}
    shared = Counter(map(_short_label, leaves.values()))
    return lambda leaf: _short_label(leaf) if shared[_short_label(leaf)] == 1 else _full_label(leaf)


def _short_label(leaf: Leaf) -> str:
    """Shorten `s3://bucket/raw/orders` to `s3://…/orders`."""
    match = _URI.fullmatch(leaf.label)
    return f"{match[1]}…/{match[3]}" if match else leaf.label


def _full_label(leaf: Leaf) -> str:
    if isinstance(leaf, Asset):
        return leaf.uri
    return leaf.label


def code_span(text: str) -> str:
    """Return the text as inline code, shown as it is, whatever Markdown or HTML it contains.

    The fence is longer than any run of backticks in the text, and the text is on one line, so that nothing in it can
    end the span.
    """
    line = _one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if "`" in line or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def plain_text(text: str) -> str:
    """Escape each character that has a meaning in Markdown, also in a table. Addresses do not become links."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x20\x7f\u0085\u2028\u2029]+", " ", text).strip()
