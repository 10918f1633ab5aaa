"""Draw the result of a simulation: the runs and errors of each step, and what is waiting at the end.

In a timed scenario, time acts between the steps too. Each such instant has a row of its own.
"""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, cast

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assetflow.core.simulate import Scenario, read_scenarios, run_scenario, scenario_of_flows
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import InvalidFlow, InvalidScenario
from assetflow.stack.flow_files import imported

Json = Mapping[str, object]


class _Act(NamedTuple):
    """An action at an instant, and the step that the answer gives it, if it gives one."""

    at: str
    step: int | None
    line: Text


def draw(console: Console, scenario: Scenario, answer: Json) -> None:
    """Draw one scenario with its result."""
    table = Table(title=Text(scenario.name), title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    table.add_column("time", style="dim", no_wrap=True)
    table.add_column("step", justify="right", style="dim")
    table.add_column("what happens")
    table.add_column("and then")
    table.add_row(f"{scenario.start:%m-%d %H:%M:%S}", "", "consumers are deployed", _lines(_happened(answer, None)))
    timed = _Timed(scenario, answer)
    for number, step in enumerate(scenario.steps):
        for at, then in timed.before(number):
            table.add_row(f"{at[5:10]} {at[11:19]}", "", "time acts", _lines(then))
        then = [*_happened(answer, number, timed=scenario.passes == "timed"), *timed.at(number)]
        table.add_row(f"{step.time:%m-%d %H:%M:%S}", str(number), Text(_described(step.source)), _lines(then))
    console.print(table)
    for line in _waiting(answer):
        console.print(line)
    if "receipts" in answer:
        console.print(_receipts(_list(answer["receipts"])))
    console.print()


class _Timed:
    """The actions at the instants of a timed scenario; none in other scenarios."""

    def __init__(self, scenario: Scenario, answer: Json) -> None:
        self._times = [f"{step.time:%Y-%m-%dT%H:%M:%SZ}" for step in scenario.steps]
        self._acts = sorted(_acts(answer), key=lambda act: act.at) if scenario.passes == "timed" else []

    def before(self, number: int) -> Iterator[tuple[str, list[Text]]]:
        """Yield the instants between the step before and this one, and what happens there."""
        previous = self._times[number - 1] if number else ""
        between = [act for act in self._acts if previous < act.at < self._times[number]]
        for at, acts in groupby(between, key=lambda act: act.at):
            yield at, [act.line for act in acts]

    def at(self, number: int) -> list[Text]:
        """Return what happens in the instant of a step, and belongs to it and not to another at the same time."""
        return [act.line for act in self._acts if act.at == self._times[number] and self._step_of(act) == number]

    def _step_of(self, act: _Act) -> int:
        steps = [number for number, time in enumerate(self._times) if time == act.at]
        return act.step if act.step in steps else steps[-1]


def _acts(answer: Json) -> Iterator[_Act]:
    for missed in _list(answer.get("missed", [])):
        what = f"on_deadline {missed['then']}, {missed['queued']} queued"
        line = f"! {_named(missed)} missed its deadline of {missed['due']} ({what})"
        yield _Act(str(missed["at"]), cast("int", missed["step"]), Text(line, "red"))
    for run in _list(answer["runs"]):
        yield _Act(str(run.get("at", run.get("time"))), cast("int", run["step"]), Text(_run(run), "green"))
    for receipt in _list(answer.get("receipts", [])):
        if receipt["status"] in ("expired", "skipped"):
            line = f"– {receipt['asset']} (event {receipt['event']}) {receipt['status']} for {_named(receipt)}"
            yield _Act(str(receipt["at"]), None, Text(line, "yellow"))


def _named(entry: Json) -> str:
    key = f" [{entry['partition_key']}]" if "partition_key" in entry else ""
    return f"{entry['consumer']}{key}"


def _run(run: Json) -> str:
    events = _list(run["events"])
    cause = f"with {_counted(events)}" if events else f"at {run['time']}"
    opening = f", opened {run['time']}" if events and "time" in run else ""
    deadline = ", by its deadline" if "deadline" in run else ""
    return f"▶ {_named(run)} runs {cause}{opening}{deadline}"


def _happened(answer: Json, step: int | None, *, timed: bool = False) -> Iterator[Text]:
    for run in _of_step(answer, "runs", step):
        if not timed:
            yield Text(_run(run), "green")
    for given in _of_step(answer, "answers", step):
        if "explained" in given:
            for row in _list(given["explained"]):
                yield Text(_explained(str(given["consumer"]), row), "cyan")
        elif "removed" in given:
            yield Text(f"{given['removed']} removed", "yellow")
        else:
            yield Text(_queues(cast("Json", given["queued"])) or "nothing is queued", "cyan")
    for error in _of_step(answer, "errors", step):
        consumer = f"{error['consumer']}: " if "consumer" in error else ""
        yield Text(f"✗ {consumer}{error['error']} ({error['rule']})", "red")


def _explained(consumer: str, row: Json) -> str:
    waits = cast("Mapping[str, str | None]", row["waits"])
    reasons = [f"{reason} until {moment}" if moment else reason for reason, moment in waits.items()]
    expiries = [
        f"event {event} expires at {moment}" for event, moment in cast("list[list[object]]", row.get("expires", []))
    ]
    deadline = [f"deadline {row['deadline']}"] if "deadline" in row else []
    return f"{_named({'consumer': consumer, **row})} waits: {'; '.join([', '.join(reasons), *expiries, *deadline])}"


def _lines(each: Iterable[Text]) -> Text:
    return Text("\n").join(each)


def _of_step(answer: Json, part: str, step: int | None) -> list[Json]:
    return [entry for entry in _list(answer.get(part, [])) if entry["step"] == step]


def _described(step: Json) -> str:
    """Return a step as the user wrote it, in short form."""
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
        detail = ", ".join(f"{key} {receipt[key]}" for key in ("step", "at", "by", "why", "error") if key in receipt)
        cells = (receipt["event"], receipt["asset"], receipt["consumer"] or "–", receipt.get("partition_key", ""))
        table.add_row(*(Text(str(cell)) for cell in (*cells, receipt["status"], detail)))
    return table


def _list(value: object) -> list[Json]:
    return cast("list[Json]", value)


def schedules_of(file: Path) -> dict[str, ConsumerOptions]:
    """Return the name and options of each flow in the module that has a schedule, in the module's order.

    Raises:
        InvalidFlow: the module cannot be imported, or none of its flows has a schedule.
    """
    module = imported(file)
    found = {
        name: declaration.options
        for name, declaration in _declarations(module)
        if declaration.options.schedule != Schedule()
    }
    if not found:
        raise InvalidFlow("no flow here has a schedule", where=str(file), fix="Write @flow(schedule=...) over one")
    return found


def _declarations(module: ModuleType) -> Iterator[tuple[str, FlowDeclaration]]:
    for name, value in vars(module).items():
        declaration = getattr(value, "declaration", None)
        if isinstance(declaration, FlowDeclaration):
            yield str(getattr(value, "name", name)), declaration


class _PlainLoader(yaml.SafeLoader):
    """A YAML loader that reads a time as text, as it is in a JSON file."""


_PlainLoader.yaml_implicit_resolvers = {
    start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_data(text: str, file_name: str) -> object:
    """Parse the text: as YAML if the file name ends with .yaml or .yml, else as JSON.

    Raises:
        InvalidScenario: the text is not valid YAML or JSON.
    """
    try:
        if Path(file_name).suffix in (".yaml", ".yml"):
            return cast("object", yaml.load(text, _PlainLoader))
        return cast("object", json_text.loads(text))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidScenario(
            f"cannot be read: {error}", where=file_name, fix="Write JSON, or YAML in a file whose name ends with .yaml"
        ) from error


def read_text(file: Path) -> str:
    """Return the text of a file.

    Raises:
        InvalidScenario: the file does not exist, or is not text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        fix = "Name a file with a scenario, in JSON or YAML"
        raise InvalidScenario(f"cannot be read: {error.strerror}", where=str(file), fix=fix) from error
    except UnicodeDecodeError as error:
        fix = "Save the file as text, in UTF-8"
        raise InvalidScenario(f"cannot be read: {error}", where=str(file), fix=fix) from error


def simulate(*files: Path, json: bool = False, flows: Path | None = None, events: Path | None = None) -> None:
    """Show what schedules would do with events, without a server, a database or a clock.

    Parameters
    ----------
    files
        Files with scenarios, in JSON or YAML.
    json
        Print the results as one JSON document.
    flows
        A Python module whose flows are the consumers, instead of scenario files.
    events
        With --flows: a file with the steps, a list in JSON or YAML. To name an asset by its name, write an outlet of a
        task: `- task: {outlets: [{ref: {name: orders}}]}`.
    """
    scenarios, alone = _scenarios(files, flows, events)
    answers = [run_scenario(scenario) for scenario in scenarios]
    if json:
        sys.stdout.write(json_text.dumps(answers[0] if alone else answers, indent=1) + "\n")
        return
    console = Console()
    for scenario, answer in zip(scenarios, answers, strict=True):
        draw(console, scenario, answer)


def _scenarios(files: tuple[Path, ...], flows: Path | None, events: Path | None) -> tuple[list[Scenario], bool]:
    """Read all scenarios. Return them, and True if there is one file with a single scenario."""
    if flows is not None or events is not None:
        if flows is None or events is None or files:
            raise InvalidScenario("--flows and --events are given together, and without other files")
        steps = read_data(read_text(events), str(events))
        return [scenario_of_flows(str(flows), schedules_of(flows), steps, str(events))], True
    if not files:
        raise InvalidScenario("no file is named", fix="Name one or more files, or --flows and --events")
    documents = [(read_data(read_text(file), str(file)), str(file)) for file in files]
    scenarios = [scenario for data, name in documents for scenario in read_scenarios(data, name)]
    return scenarios, len(documents) == 1 and not isinstance(documents[0][0], list)
