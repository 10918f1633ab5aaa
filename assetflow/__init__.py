"""Asset-driven orchestration on Prefect flows and PySpark tasks.

A task names the assets that it updates, a flow the assets that it runs on:

    from assetflow import Asset, flow, task

    orders = Asset("s3://shop/orders")

    @task(outlets=[orders])
    def produce(): ...

    @flow(schedule=orders)
    def report(triggering_asset_events): ...

The names are imported when they are first used, so that `import assetflow` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assetflow.authoring.asset_decorator import AssetDefinition, asset
    from assetflow.authoring.emitting import emit
    from assetflow.authoring.flows import AssetFlow, flow
    from assetflow.authoring.metadata import Metadata, Skip
    from assetflow.authoring.outlet_events import OutletEvents
    from assetflow.authoring.reading import InletEvents
    from assetflow.authoring.recording import outlet_events
    from assetflow.authoring.sources import inlet_events
    from assetflow.authoring.tasks import AssetTask, task
    from assetflow.authoring.triggering import TriggeringAssetEvents, partition_key, triggering_asset_events
    from assetflow.core.assets import Asset, AssetAlias
    from assetflow.core.conditions import AssetAll, AssetAny
    from assetflow.core.events import AssetEvent
    from assetflow.core.partitions import (
        AllowedKeyMapper,
        ChainMapper,
        DayWindow,
        FanOutMapper,
        FixedKeyMapper,
        HourWindow,
        IdentityMapper,
        MinimumCount,
        MonthWindow,
        ProductMapper,
        QuarterWindow,
        RollupMapper,
        SegmentWindow,
        StartOfDayMapper,
        StartOfHourMapper,
        StartOfMonthMapper,
        StartOfQuarterMapper,
        StartOfWeekMapper,
        StartOfYearMapper,
        WaitForAll,
        WeekWindow,
        YearWindow,
    )
    from assetflow.core.schedules import AssetOrTimeSchedule, PartitionedAssetTimetable
    from assetflow.core.timetables import (
        CronPartitionTimetable,
        CronTriggerTimetable,
        DeltaTriggerTimetable,
        PartitionedAtRuntime,
        RRuleTimetable,
    )
    from assetflow.core.uri import register_scheme
    from assetflow.errors import AssetflowError
    from assetflow.prefect_io.triggers import deployment_triggers
    from assetflow.spark.publish import publish
    from assetflow.spark.reading import read
    from assetflow.spark.task import spark_task

_PLACES = {
    "assetflow.authoring.asset_decorator": ("AssetDefinition", "asset"),
    "assetflow.authoring.emitting": ("emit",),
    "assetflow.authoring.flows": ("AssetFlow", "flow"),
    "assetflow.authoring.metadata": ("Metadata", "Skip"),
    "assetflow.authoring.outlet_events": ("OutletEvents",),
    "assetflow.authoring.reading": ("InletEvents",),
    "assetflow.authoring.recording": ("outlet_events",),
    "assetflow.authoring.sources": ("inlet_events",),
    "assetflow.authoring.tasks": ("AssetTask", "task"),
    "assetflow.authoring.triggering": ("TriggeringAssetEvents", "partition_key", "triggering_asset_events"),
    "assetflow.core.assets": ("Asset", "AssetAlias"),
    "assetflow.core.conditions": ("AssetAll", "AssetAny"),
    "assetflow.core.events": ("AssetEvent",),
    "assetflow.core.partitions": (
        "AllowedKeyMapper",
        "ChainMapper",
        "DayWindow",
        "FanOutMapper",
        "FixedKeyMapper",
        "HourWindow",
        "IdentityMapper",
        "MinimumCount",
        "MonthWindow",
        "ProductMapper",
        "QuarterWindow",
        "RollupMapper",
        "SegmentWindow",
        "StartOfDayMapper",
        "StartOfHourMapper",
        "StartOfMonthMapper",
        "StartOfQuarterMapper",
        "StartOfWeekMapper",
        "StartOfYearMapper",
        "WaitForAll",
        "WeekWindow",
        "YearWindow",
    ),
    "assetflow.core.schedules": ("AssetOrTimeSchedule", "PartitionedAssetTimetable"),
    "assetflow.core.timetables": (
        "CronPartitionTimetable",
        "CronTriggerTimetable",
        "DeltaTriggerTimetable",
        "PartitionedAtRuntime",
        "RRuleTimetable",
    ),
    "assetflow.core.uri": ("register_scheme",),
    "assetflow.errors": ("AssetflowError",),
    "assetflow.prefect_io.triggers": ("deployment_triggers",),
    "assetflow.spark.publish": ("publish",),
    "assetflow.spark.reading": ("read",),
    "assetflow.spark.task": ("spark_task",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "AllowedKeyMapper",
    "Asset",
    "AssetAlias",
    "AssetAll",
    "AssetAny",
    "AssetDefinition",
    "AssetEvent",
    "AssetFlow",
    "AssetOrTimeSchedule",
    "AssetTask",
    "AssetflowError",
    "ChainMapper",
    "CronPartitionTimetable",
    "CronTriggerTimetable",
    "DayWindow",
    "DeltaTriggerTimetable",
    "FanOutMapper",
    "FixedKeyMapper",
    "HourWindow",
    "IdentityMapper",
    "InletEvents",
    "Metadata",
    "MinimumCount",
    "MonthWindow",
    "OutletEvents",
    "PartitionedAssetTimetable",
    "PartitionedAtRuntime",
    "ProductMapper",
    "QuarterWindow",
    "RRuleTimetable",
    "RollupMapper",
    "SegmentWindow",
    "Skip",
    "StartOfDayMapper",
    "StartOfHourMapper",
    "StartOfMonthMapper",
    "StartOfQuarterMapper",
    "StartOfWeekMapper",
    "StartOfYearMapper",
    "TriggeringAssetEvents",
    "WaitForAll",
    "WeekWindow",
    "YearWindow",
    "asset",
    "deployment_triggers",
    "emit",
    "flow",
    "inlet_events",
    "outlet_events",
    "partition_key",
    "publish",
    "read",
    "register_scheme",
    "spark_task",
    "task",
    "triggering_asset_events",
]


def __getattr__(name: str) -> object:
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'assetflow' has no attribute {name!r}")
    value = getattr(import_module(_PLACE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
