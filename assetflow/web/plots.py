"""Small plots of an asset's last updates: rows, bytes, seconds, the gaps between updates, and what checks found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.events import SCHEMA, AssetEvent, CheckedData, CheckResult
from assetflow.core.values.words import colour_of, count, sign_of

WIDTH, HEIGHT = 120, 28
RUNS = 8
_MARGIN = 3
_PASSED = 6
_BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
_FIRST = ("rows", "bytes", "seconds")


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        newest: the newest value, in words.
        label: what a screen reader says instead of the line.
        points: the line, as the `points` of an SVG polyline.
        end: the place of the newest value.
    """

    title: str
    newest: str
    label: str
    points: str
    end: tuple[float, float]


def plots_of(newest_first: Sequence[AssetEvent]) -> list[Plot]:
    """Return the plots of updates: one for each metric that at least two of them have, and one of the gaps."""
    events = newest_first[::-1]
    names = {name for event in events for name in event.metrics} - {SCHEMA}
    found = [
        _plot(name.capitalize(), [event.metrics[name] for event in events if name in event.metrics], _words(name))
        for name in (*(each for each in _FIRST if each in names), *sorted(names.difference(_FIRST)))
    ]
    gaps = [(after.occurred - before.occurred).total_seconds() for before, after in pairwise(events)]
    return [each for each in (*found, _plot("Gap", gaps, span_words)) if each is not None]


@dataclass(frozen=True)
class CheckPlot:
    """The history of one check, as bars: a low one where the data passed, a high one where it failed.

    Attributes:
        state: `good`, `wait` for a warning, or `bad`: what the check found last.
        bars: the place, the height and the state of each bar.
    """

    title: str
    newest: str
    label: str
    state: str
    bars: Sequence[tuple[float, float, str]]


def check_plots(newest_first: Sequence[CheckedData]) -> list[CheckPlot]:
    """Return the plots of the checks of an asset, by the name of the check."""
    found: dict[str, list[CheckResult]] = {}
    for data in newest_first[::-1]:
        for result in data.checks:
            found.setdefault(result.check, []).append(result)
    return [_check_plot(name, found[name]) for name in sorted(found)]


def _check_plot(name: str, results: Sequence[CheckResult]) -> CheckPlot:
    last, failed = results[-1], sum(not each.passed for each in results)
    newest = "passed" if last.passed else "failed" if last.found is None else f"failed: {_number(last.found)}"
    label = f"{name} failed {failed} of {len(results)} times, and {'passed' if last.passed else 'failed'} last"
    step = (WIDTH - 2 * _MARGIN) / max(len(results), 10)
    states = ["good" if each.passed else "wait" if each.severity == "warn" else "bad" for each in results]
    bars = [
        (round(_MARGIN + place * step, 1), float(_PASSED if state == "good" else HEIGHT - 2 * _MARGIN), state)
        for place, state in enumerate(states)
    ]
    return CheckPlot(name, newest, label, states[-1], bars)


@dataclass(frozen=True)
class RunBars:
    """The last runs of a flow, as bars: each as high as the run took long.

    Attributes:
        bars: the place, the height and the colour of each bar.
    """

    label: str
    bars: Sequence[tuple[float, float, str]]


def run_bars(runs: Sequence[EndedRun]) -> RunBars:
    """Return the bars of a flow's last runs, given oldest first."""
    failed = sum(each.has_failed for each in runs)
    label = f"Last {count(len(runs), 'run')}: {failed} failed" if failed else f"Last {count(len(runs), 'run')}"
    seconds = [(each.ended - (each.began or each.ended)).total_seconds() for each in runs]
    longest = max(seconds, default=0) or 1
    bars = [
        (place * 7.0, round(5 + 11 * took / longest, 1), colour_of(sign_of(each.outcome, "off")))
        for place, (each, took) in enumerate(zip(runs, seconds, strict=True), RUNS - len(runs))
    ]
    return RunBars(label, bars)


def metrics_words(metrics: Mapping[str, float]) -> str:
    """Return the metrics of an update in words: `336,776 rows · 5.6 MB · 42 s`."""
    names = (*(name for name in _FIRST if name in metrics), *sorted(metrics.keys() - {*_FIRST, SCHEMA}))
    return " · ".join(_with_unit(name, metrics[name]) for name in names)


def schema_changes(newest_first: Iterable[AssetEvent]) -> set[UUID]:
    """Return the ids of the updates whose data has other columns or types than that of the update before."""
    known = [event for event in newest_first if SCHEMA in event.metrics]
    return {event.id for event, before in pairwise(known) if event.metrics[SCHEMA] != before.metrics[SCHEMA]}


def span_words(seconds: float) -> str:
    """Return a number of seconds in words: `42 s`, `3.2 min`, `5 h`, `2.1 d`."""
    for size, unit, divisor in ((90, "s", 1), (5_400, "min", 60), (172_800, "h", 3_600)):
        if abs(seconds) < size:
            return f"{_short(seconds / divisor)} {unit}"
    return f"{_short(seconds / 86_400)} d"


def _plot(title: str, values: Sequence[float], words: Callable[[float], str]) -> Plot | None:
    if len(values) < 2:
        return None
    places = list(_places(values))
    label = (
        f"{title} of {len(values)} updates: {words(min(values))} to {words(max(values))}, newest {words(values[-1])}"
    )
    if title == "Gap":
        label = f"Gaps between {len(values) + 1} updates: {words(min(values))} to {words(max(values))}"
    return Plot(title, words(values[-1]), label, " ".join(f"{x:g},{y:g}" for x, y in places), places[-1])


def _places(values: Sequence[float]) -> Iterable[tuple[float, float]]:
    low, high = min(values), max(values)
    step = (WIDTH - 2 * _MARGIN) / (len(values) - 1)
    for number, value in enumerate(values):
        share = (value - low) / (high - low) if high > low else 0.5
        yield round(_MARGIN + number * step, 1), round(HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN), 1)


def _words(name: str) -> Callable[[float], str]:
    return {"bytes": _bytes, "seconds": span_words, SCHEMA: _id}.get(name, _number)


def metric_words(name: str, value: float) -> str:
    """Return a metric in the unit that a reader wants: `5.4 MB`, `42 s`, `336,776`."""
    return _words(name)(value)


def _with_unit(name: str, value: float) -> str:
    words = metric_words(name, value)
    if name in ("bytes", "seconds"):
        return words
    return f"{words} {name.removesuffix('s') if value == 1 else name}"


def _bytes(value: float) -> str:
    power = 0
    while abs(value) >= 999.5 and power < len(_BYTES) - 1:
        value, power = value / 1_000, power + 1
    return f"{_short(value)} {_BYTES[power]}"


def _id(value: float) -> str:
    return f"{int(value):012x}"


def _number(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1 else f"{value:,.0f}"


def _short(value: float) -> str:
    """Return a number with a decimal only if it is small and has one."""
    return f"{value:.0f}" if abs(value) >= 99.95 or value == int(value) else f"{value:.1f}".removesuffix(".0")
