"""What schedules would do with events, without a server, a database or the machine's clock."""

from assetflow.core.simulation.run import run_scenario, simulate
from assetflow.core.simulation.scenario import Scenario, read_scenario, read_scenarios, scenario_of_flows

__all__ = ["Scenario", "read_scenario", "read_scenarios", "run_scenario", "scenario_of_flows", "simulate"]
