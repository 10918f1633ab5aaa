"""`Lazy`: the schedule of flows that run as seldom as the freshness policies below them allow (contract 8.1, 8.14)."""

from __future__ import annotations

from datetime import timedelta

from assetflow.core.values.keeping import RETRY_DELAY, Keeping
from assetflow.core.values.schedules import Schedule


class Lazy:
    """A schedule that runs a flow as late and as seldom as freshness policies allow.

    >>> from datetime import timedelta
    >>> from assetflow import Asset, FreshnessPolicy, Lazy, flow, task
    >>> raw = Asset("s3://lake/raw")
    >>> board = Asset("s3://lake/board", freshness=FreshnessPolicy(timedelta(hours=1)))
    >>> @task(inlets=[raw], outlets=[board])
    ... def build(): ...
    >>> @flow(schedule=Lazy())
    ... def report():
    ...     build()
    >>> report.schedule.describe()
    'as seldom as the freshness policies below it allow'

    The flow runs when a `FreshnessPolicy` of what it makes, or of what is made from that, could not be held otherwise:
    so early that it and the Lazy and Eager flows above it are done in time, by how long their last runs took. It does
    not run if nothing that it reads has changed. Without a policy below it never runs, and assetflow warns of that at
    the deploy. A Lazy flow has no partitions. Contract 8.14, 8.15.

    Parameters:
        retries: how often a run that failed is repeated for the same inputs. The `retries` of the flow repeat it within
            one run.
        retry_delay: the time between a failed run and the next one for the same inputs.
        expected_duration: how long a run takes; `None` for no time at all. It counts until the first run has completed;
            then the last 20 completed runs do.

    Raises:
        InvalidSchedule: an option has a wrong value.
    """

    def __init__(
        self,
        *,
        retries: int = 1,
        retry_delay: timedelta = RETRY_DELAY,
        expected_duration: timedelta | None = None,
    ) -> None:
        self._keeping = Keeping("lazy", retries=retries, retry_delay=retry_delay, expected_duration=expected_duration)

    def as_schedule(self) -> Schedule:
        """Return the schedule in the one form that all schedules have inside assetflow."""
        return Schedule(keeping=self._keeping)
