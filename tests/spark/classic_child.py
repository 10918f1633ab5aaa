"""A process whose user stops the session, and starts one of his own."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from assetflow.errors import SparkSettingsConflict
from assetflow.spark.java import use_java
from assetflow.spark.session import SparkProfile, get_session

use_java()
own = SparkSession.builder.master("local[1]").getOrCreate()
try:
    get_session(SparkProfile(remote="local"))
    foreign = "connected"
except SparkSettingsConflict:
    foreign = "conflict"
assert get_session(SparkProfile(master="local[1]")) is own
own.stop()
again = get_session(SparkProfile(master="local[1]"))
result = {"restarted": again.range(3).count() == 3, "foreign": foreign}
again.stop()
sys.stdout.write(json.dumps(result))
