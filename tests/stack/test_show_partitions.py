"""The demo's table: a run's many partitions share a line, up to the one that completes something."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console

from assetflow.core.partitions import FixedKeyMapper, RollupMapper, SegmentWindow
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger, Reader
from assetflow.stack.summary import Story, deployed_now, show
from tests.ledger.making import NOW, A, B, deploy, event, recording

KEYS = ["a", "b", "c"]


def test_partitions_of_a_run_share_a_line(tmp_path: Path) -> None:
    mapper = RollupMapper(upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(KEYS))
    run = Origin("task", flow_run=SourceFlowRun(uuid4(), flow_name="load", deployment_name="lake"))
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        deploy(ledger, PartitionedAssetTimetable(assets=A, default_partition_mapper=mapper), "all/one")
        ledger.writer.events.record([recording(event(B))], NOW)
        for keys in (KEYS, ["d"]):
            updates = (event(A, partition_key=key, origin=run) for key in keys)
            ledger.writer.events.record([recording(*updates)], NOW)
    with Reader.open(tmp_path / "ledger.db") as reader:
        story = Story.read(reader, [], deployed_now(reader))
    console = Console(file=StringIO(), width=100)
    summary: dict[str, Any] = story.as_json() | {"held_back": [], "results": {"checks": []}}

    console.print(show(story, summary))

    told: str = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    (line,) = [line for line in told.splitlines() if "all/one" in line and "no run" in line]
    assert line.split()[0] == "#2–#4"
    assert "#2–#4" in line.partition("all/one")[2]
    assert "#5 s3://lake/a" in told
