"""The simulator: what schedules would do with updates, without a server, a database or a clock."""

from __future__ import annotations

from assetflow.core.simulate.run import run_scenario, simulate
from assetflow.core.simulate.steps import Scenario, read_scenario, read_scenarios, scenario_of_flows

__all__ = ["Scenario", "read_scenario", "read_scenarios", "run_scenario", "scenario_of_flows", "simulate"]
