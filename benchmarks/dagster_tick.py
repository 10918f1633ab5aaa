"""Measure how long Dagster 1.13 takes to handle one update of the graph of `benchmarks.freshness`.

Run it with the interpreter of an environment of its own, which has Dagster, and give the numbers of flows, of hourly
tables and of their keys: `python benchmarks/dagster_tick.py 1800 200 10000`. It prints one JSON document. The tables
without keys are materialized before; those with keys are not, which spares Dagster two million events.
"""
# Dagster is not installed beside assetflow, so nothing is known of its types here.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

import dagster as dg

LAYERS, INPUTS, TICKS = 10, 3, 3
START = datetime(2024, 1, 1, tzinfo=UTC)


def definitions(flows: int, hourly: int, keys: int) -> tuple[dg.Definitions, list[dg.AssetKey], list[dg.AssetKey]]:
    """Return the assets of the graph, the keys of its sources, and those of its tables without keys."""
    width = max(flows // LAYERS, INPUTS)
    names = [[f"layer{depth}_{place:03}" for place in range(width)] for depth in range(LAYERS + 1)]
    assets: list[object] = [dg.AssetSpec(name) for name in names[0]]
    for above, layer in pairwise(names):
        for place, name in enumerate(layer):
            assets.append(_table(name, [above[(place + step) % width] for step in range(INPUTS)], None))
    end = START + timedelta(hours=keys)
    hours = dg.HourlyPartitionsDefinition(start_date=START, end_date=end)
    for place in range(hourly):
        assets.append(dg.AssetSpec(f"hours_{place:03}", partitions_def=hours))
        assets.append(_table(f"tables_{place:03}", [f"hours_{place:03}"], hours))
    sources = [dg.AssetKey(name) for name in names[0]]
    return dg.Definitions(assets=assets), sources, [dg.AssetKey(name) for layer in names for name in layer]


def _table(name: str, reads: list[str], hours: dg.PartitionsDefinition | None) -> dg.AssetsDefinition:
    @dg.asset(name=name, deps=reads, partitions_def=hours, automation_condition=dg.AutomationCondition.eager())
    def make() -> None: ...

    return make


def ticks(flows: int, hourly: int, keys: int) -> list[float]:
    """Return the CPU milliseconds of some ticks, each after one update of a source."""
    defs, sources, plain = definitions(flows, hourly, keys)
    instance = dg.DagsterInstance.ephemeral()
    for key in plain:
        instance.report_runless_asset_event(dg.AssetMaterialization(key))
    found: list[float] = []
    done = dg.evaluate_automation_conditions(defs, instance)
    done = dg.evaluate_automation_conditions(defs, instance, cursor=done.cursor)
    for place in range(TICKS):
        instance.report_runless_asset_event(dg.AssetMaterialization(sources[place % len(sources)]))
        began = time.process_time()
        done = dg.evaluate_automation_conditions(defs, instance, cursor=done.cursor)
        found.append(1000 * (time.process_time() - began))
        assert done.total_requested, "an update of a source starts the tables that read it"
    return found


if __name__ == "__main__":
    flows, hourly, keys = map(int, sys.argv[1:4])
    measured = ticks(flows, hourly, keys)
    print(json.dumps({"dagster": dg.__version__, "tick_ms": measured, "tick_ms_median": median(measured)}))
