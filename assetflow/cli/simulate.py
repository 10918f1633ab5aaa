"""`assetflow simulate`: show what schedules would do with events."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path

from rich.console import Console

from assetflow.cli.flow_files import schedules_of
from assetflow.cli.scenario_files import read_data, read_text
from assetflow.cli.timeline import draw
from assetflow.core.simulate import Scenario, read_scenarios, run_scenario, scenario_of_flows
from assetflow.errors import InvalidScenario


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
