"""Checks that new data has to pass before anybody sees it. Contract chapter 12.

>>> from assetflow import Asset, spark_task
>>> from assetflow.checks import at_least, no_nulls, unique
>>> orders = Asset("file:///lake/orders")
>>> @spark_task(outlets=[orders], checks={orders: [at_least(1), no_nulls("id"), unique("id")]})
... def load(spark):
...     return spark.range(3)
"""

from assetflow.authoring.checks import Check, at_least, bounds, check, no_nulls, pandera_schema, schema, unique, values
from assetflow.core.values.events import CheckResult
from assetflow.spark.publish import staged

__all__ = [
    "Check",
    "CheckResult",
    "at_least",
    "bounds",
    "check",
    "no_nulls",
    "pandera_schema",
    "schema",
    "staged",
    "unique",
    "values",
]
