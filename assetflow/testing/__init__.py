"""Test schedules with a harness: `with harness() as h: ...`."""

from assetflow.testing.harness import ConsumerRun, Harness, harness

__all__ = ["ConsumerRun", "Harness", "harness"]
