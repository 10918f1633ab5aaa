"""A simulation as a person reads it: step by step, what ran and what went wrong, and at the end what waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assetflow.core.simulation import Scenario

Json = Mapping[str, object]


def draw(console: Console, scenario: Scenario, answer: Json) -> None:
    """Draw one scenario with its answer."""
    table = Table(title=Text(scenario.name), title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    table.add_column("time", style="dim", no_wrap=True)
    table.add_column("step", justify="right", style="dim")
    table.add_column("what happens")
    table.add_column("and then")
    _row(table, f"{scenario.start:%m-%d %H:%M:%S}", "", "consumers are deployed", _happened(answer, None))
    for number, step in enumerate(scenario.steps):
        _row(table, f"{step.time:%m-%d %H:%M:%S}", str(number), _described(step.source), _happened(answer, number))
    console.print(table)
    for line in _waiting(answer):
        console.print(line)
    if "receipts" in answer:
        console.print(_receipts(_list(answer["receipts"])))
    console.print()


def _row(table: Table, time: str, step: str, what: str, then: Text) -> None:
    table.add_row(time, step, Text(what), then)


def _happened(answer: Json, step: int | None) -> Text:
    text = Text()
    for run in _of_step(answer, "runs", step):
        events = _list(run["events"])
        cause = f"at {run['time']}" if "time" in run else f"with {_counted(events)}"
        key = f" [{run['partition_key']}]" if "partition_key" in run else ""
        _line(text, f"▶ {run['consumer']}{key} runs {cause}", "green")
    for given in _of_step(answer, "answers", step):
        if "removed" in given:
            _line(text, f"{given['removed']} removed", "yellow")
        else:
            _line(text, _queues(cast("Json", given["queued"])) or "nothing is queued", "cyan")
    for error in _of_step(answer, "errors", step):
        consumer = f"{error['consumer']}: " if "consumer" in error else ""
        _line(text, f"✗ {consumer}{error['error']} ({error['rule']})", "red")
    return text


def _line(text: Text, line: str, style: str) -> None:
    text.append("\n" if text else "")
    text.append(line, style)


def _of_step(answer: Json, part: str, step: int | None) -> list[Json]:
    return [entry for entry in _list(answer.get(part, [])) if entry["step"] == step]


def _described(step: Json) -> str:
    """A step as it was written, in short."""
    return ", ".join(f"{key} {_value(value)}" for key, value in step.items() if key != "at") or "time passes"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(inner)}" for key, inner in cast("Json", value).items())
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast('list[object]', value)))}]"
    return str(value)


def _waiting(answer: Json) -> Iterable[Text]:
    if queued := _queues(cast("Json", answer["queued"])):
        yield Text(f"waiting: {queued}", "cyan")
    for consumer, keys in cast("Mapping[str, Json]", answer["pending_partitions"]).items():
        for key, events in keys.items():
            yield Text(f"waiting: {consumer} [{key}] has {_counted(_list(events))}", "cyan")


def _queues(queues: Json) -> str:
    return "; ".join(f"{consumer} has {_counted(_list(events))}" for consumer, events in queues.items())


def _counted(events: Sequence[Json]) -> str:
    return ", ".join(f"{event['asset']} (step {event['step']})" for event in events)


def _receipts(receipts: Sequence[Json]) -> Table:
    table = Table(title="receipts", title_justify="left", show_edge=False, pad_edge=False)
    for column in ("event", "asset", "consumer", "key", "status", "detail"):
        table.add_column(column)
    for receipt in receipts:
        detail = ", ".join(f"{key} {receipt[key]}" for key in ("step", "by", "why", "error") if key in receipt)
        cells = (receipt["event"], receipt["asset"], receipt["consumer"] or "–", receipt.get("partition_key", ""))
        table.add_row(*(Text(str(cell)) for cell in (*cells, receipt["status"], detail)))
    return table


def _list(value: object) -> list[Json]:
    return cast("list[Json]", value)
