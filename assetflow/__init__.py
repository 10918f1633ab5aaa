"""Asset-driven orchestration on Prefect flows and PySpark tasks.

A task names the assets that it updates, a flow names the assets that it runs on:

>>> from assetflow import Asset, TriggeringAssetEvents, flow, task, triggering_asset_events
>>> orders = Asset("s3://shop/orders")
>>> @task(outlets=[orders])
... def produce(): ...
>>> @flow(schedule=orders)
... def report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events): ...

This module has what most projects import. The rest is in `assetflow.partitions`, `assetflow.timetables`,
`assetflow.watchers`, `assetflow.types`, `assetflow.listeners`, `assetflow.testing` and `assetflow.errors`;
`docs/python.md` lists it all. Python loads the code behind a name when the name is first used, so
`import assetflow` alone loads neither Prefect nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assetflow.authoring.asset_decorator import asset
    from assetflow.authoring.flows import flow
    from assetflow.authoring.metadata import Metadata, OutletEvents, Skip
    from assetflow.authoring.observing import emit, observe, status
    from assetflow.authoring.past_events.reading import InletEvents
    from assetflow.authoring.past_events.sources import inlet_events
    from assetflow.authoring.recording import outlet_events
    from assetflow.authoring.tasks import task
    from assetflow.authoring.triggering import TriggeringAssetEvents, partition_key, triggering_asset_events
    from assetflow.core.simulate.run import simulate
    from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
    from assetflow.core.values.conditions import AssetAll, AssetAny, AtLeast
    from assetflow.core.values.events import AssetEvent
    from assetflow.core.values.freshness_policy import FreshnessPolicy
    from assetflow.core.values.freshness_schedules import Eager, Lazy, OnMissing
    from assetflow.core.values.schedule_values import (
        AssetAndTimeSchedule,
        AssetOrTimeSchedule,
        PartitionedAssetTimetable,
    )
    from assetflow.core.values.uri import register_scheme
    from assetflow.core.values.watchers import AssetWatcher
    from assetflow.errors import AssetflowError
    from assetflow.prefect_io.automations import deployment_triggers
    from assetflow.prefect_io.own_events import freshness_trigger
    from assetflow.retrying import retry
    from assetflow.spark.publish import publish
    from assetflow.spark.reading import read
    from assetflow.spark.task import spark_task

    __version__: str

# The public names of this module. A test compares the list with the imports around it.
__all__ = [
    "Asset",
    "AssetAlias",
    "AssetAll",
    "AssetAndTimeSchedule",
    "AssetAny",
    "AssetEvent",
    "AssetOrTimeSchedule",
    "AssetRef",
    "AssetWatcher",
    "AssetflowError",
    "AtLeast",
    "Eager",
    "FreshnessPolicy",
    "InletEvents",
    "Lazy",
    "Metadata",
    "OnMissing",
    "OutletEvents",
    "PartitionedAssetTimetable",
    "Skip",
    "TriggeringAssetEvents",
    "__version__",
    "asset",
    "deployment_triggers",
    "emit",
    "flow",
    "freshness_trigger",
    "inlet_events",
    "observe",
    "outlet_events",
    "partition_key",
    "publish",
    "read",
    "register_scheme",
    "retry",
    "simulate",
    "spark_task",
    "status",
    "task",
    "triggering_asset_events",
]

_PLACES = {
    "assetflow.authoring.asset_decorator": ("asset",),
    "assetflow.authoring.flows": ("flow",),
    "assetflow.authoring.metadata": ("Metadata", "OutletEvents", "Skip"),
    "assetflow.authoring.observing": ("emit", "observe", "status"),
    "assetflow.authoring.past_events.reading": ("InletEvents",),
    "assetflow.authoring.past_events.sources": ("inlet_events",),
    "assetflow.authoring.recording": ("outlet_events",),
    "assetflow.authoring.tasks": ("task",),
    "assetflow.authoring.triggering": ("TriggeringAssetEvents", "partition_key", "triggering_asset_events"),
    "assetflow.core.simulate.run": ("simulate",),
    "assetflow.core.values.assets": ("Asset", "AssetAlias", "AssetRef"),
    "assetflow.core.values.conditions": ("AssetAll", "AssetAny", "AtLeast"),
    "assetflow.core.values.events": ("AssetEvent",),
    "assetflow.core.values.freshness_policy": ("FreshnessPolicy",),
    "assetflow.core.values.freshness_schedules": ("Eager", "Lazy", "OnMissing"),
    "assetflow.core.values.schedule_values": (
        "AssetAndTimeSchedule",
        "AssetOrTimeSchedule",
        "PartitionedAssetTimetable",
    ),
    "assetflow.core.values.uri": ("register_scheme",),
    "assetflow.core.values.watchers": ("AssetWatcher",),
    "assetflow.errors": ("AssetflowError",),
    "assetflow.prefect_io.own_events": ("freshness_trigger",),
    "assetflow.prefect_io.automations": ("deployment_triggers",),
    "assetflow.retrying": ("retry",),
    "assetflow.spark.publish": ("publish",),
    "assetflow.spark.reading": ("read",),
    "assetflow.spark.task": ("spark_task",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

# Names of Airflow that are not here, and what to use instead.
_INSTEAD = {
    "Dataset": "is called Asset, as in Airflow 3: from assetflow import Asset",
    "DatasetAlias": "is called AssetAlias, as in Airflow 3: from assetflow import AssetAlias",
    "DatasetAll": "is called AssetAll: from assetflow import AssetAll, or combine assets with `&`",
    "DatasetAny": "is called AssetAny: from assetflow import AssetAny, or combine assets with `|`",
    "DatasetOrTimeSchedule": "is called AssetOrTimeSchedule: from assetflow import AssetOrTimeSchedule",
    **dict.fromkeys(
        ("DAG", "dag"), "is a flow here: from assetflow import flow, and put @flow(schedule=...) above a function"
    ),
}


def _load(name: str) -> object:
    if name in _INSTEAD:
        # Of an AttributeError, `from assetflow import Dataset` would not show the text.
        raise ImportError(f"{name} {_INSTEAD[name]}", name="assetflow")
    if name == "__version__":
        value: object = import_module("importlib.metadata").version("assetflow")
    elif name in _PLACE_OF:
        value = getattr(import_module(_PLACE_OF[name]), name)
    else:
        raise AttributeError(f"module 'assetflow' has no attribute {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Type checkers would take any misspelt import for this function's result.
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
