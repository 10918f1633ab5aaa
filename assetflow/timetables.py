"""When a flow runs by the clock.

>>> from assetflow import flow
>>> from assetflow.timetables import CronTriggerTimetable
>>> @flow(schedule=CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin"))
... def every_morning(): ...

A timetable stands alone in `schedule=`, or beside assets in `AssetOrTimeSchedule`. Contract 6.1, 6.2.
`AssetTriggeredTimetable` is Airflow's name for a schedule of assets alone.
"""

from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    PartitionedAtRuntime,
    RRuleTimetable,
    Timetable,
)
from assetflow.core.values.schedule_values import AssetTriggeredTimetable

__all__ = [
    "AssetTriggeredTimetable",
    "CronPartitionTimetable",
    "CronTriggerTimetable",
    "DeltaTriggerTimetable",
    "PartitionedAtRuntime",
    "RRuleTimetable",
    "Timetable",
]
