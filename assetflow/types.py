"""What decorators, calls and events give: for annotations and for `isinstance`.

>>> from assetflow import flow
>>> from assetflow.types import AssetFlow
>>> @flow
... def report(): ...
>>> isinstance(report, AssetFlow)
True
"""

from assetflow.authoring.asset_decorator import AssetDefinition
from assetflow.authoring.flows import AssetFlow
from assetflow.authoring.past_events.reading import EventSequence
from assetflow.authoring.tasks import AssetTask
from assetflow.core.explain.plan import PlannedConsumer, PlannedTarget
from assetflow.core.explain.status import Status, StatusCause
from assetflow.core.values.events import SourceFlowRun, SourceTaskRun
from assetflow.spark.writes import Published

__all__ = [
    "AssetDefinition",
    "AssetFlow",
    "AssetTask",
    "EventSequence",
    "PlannedConsumer",
    "PlannedTarget",
    "Published",
    "SourceFlowRun",
    "SourceTaskRun",
    "Status",
    "StatusCause",
]
