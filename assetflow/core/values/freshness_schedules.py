"""`Eager` and `OnMissing`: schedules of flows that keep their outputs up to date (contract 8.1 to 8.8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from assetflow.core.partitions import EveryTargetMapper, IdentityMapper, PartitionMapper, check_mapper
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AssetLike, Condition, stands_for
from assetflow.core.values.keeping import CHANGES, RETRY_DELAY, Catchup, Change, Keeping
from assetflow.core.values.schedules import MapperTarget, Partitioning, Schedule, ScheduleLike, mapper_pairs
from assetflow.errors import InvalidSchedule, not_a


class Eager(ScheduleLike):
    """A schedule that runs a flow when what it makes is out of date.

    >>> from assetflow import Asset, Eager, flow, task
    >>> raw, table = Asset("s3://lake/raw"), Asset("s3://lake/table")
    >>> @task(inlets=[raw], outlets=[table], code_version="1")
    ... def build(): ...
    >>> @flow(schedule=Eager())
    ... def core():
    ...     build()
    >>> core.schedule.describe()
    'when what it was made from is out of date'

    The flow runs when one of its outputs was never made, when one of its inputs has another version than the one that
    was read, and when its code version has changed. It compares what was read with what exists. So an update that
    comes during a run leads to another run, the same version again to none, and an output that a diamond of flows
    feeds is made once. Contract 8.3 to 8.8.

    Parameters:
        starts: the inputs whose changes start runs; by default all inputs do. The inputs are the inlets of the flow's
            tasks, and these assets.
        on: which changes start runs: "data", "code", or both.
        catchup: which of the targets that are out of date at a deploy or after a pause are still to be run: "none",
            "latest" (the greatest key, or the one run of a flow without partitions), or "all". True means "all", False
            means "none" (contract 8.8).
        lookback: run only this many of the greatest keys.
        retries: how often a run that failed is repeated for the same inputs. The `retries` of the flow repeat it within
            one run.
        retry_delay: the time between a failed run and the next one for the same inputs.
        expected_duration: how long a run takes; `None` for no time at all. Freshness policies below count with it until
            the first run has completed; then with the last 20 completed runs (contract 8.15).
        default_partition_mapper: the mapper of every input that has none of its own; makes the flow partitioned.
        partition_mapper_config: the inputs that have a mapper of their own, each with its mapper. Mappers to single
            keys make the flow partitioned.

    Raises:
        InvalidSchedule: `starts` has something else than assets and references, or an option has a wrong value.
        InvalidPartition: a value given as a mapper is not a mapper.
    """

    def __init__(
        self,
        *starts: Asset | AssetRef | AssetLike,
        on: Collection[Change] = CHANGES,
        catchup: Catchup | bool = "latest",
        lookback: int | None = None,
        retries: int = 0,
        retry_delay: timedelta = RETRY_DELAY,
        expected_duration: timedelta | None = None,
        default_partition_mapper: PartitionMapper | None = None,
        partition_mapper_config: Mapping[MapperTarget, PartitionMapper] | None = None,
    ) -> None:
        pairs = mapper_pairs(partition_mapper_config)
        by_key = default_partition_mapper is not None or any(
            not isinstance(mapper, EveryTargetMapper) for _, mapper in pairs
        )
        default = IdentityMapper() if default_partition_mapper is None else check_mapper(default_partition_mapper)
        keeping = Keeping(
            "eager",
            tuple(_start(each) for each in starts),
            on,
            _catchup(catchup),
            lookback,
            retries,
            retry_delay,
            expected_duration,
            mappers=() if by_key else pairs,
        )
        self._schedule = Schedule(partitioning=Partitioning(default, pairs) if by_key else None, keeping=keeping)


class OnMissing(Eager):
    """A schedule that runs a flow only to make what was never made.

    >>> from assetflow import Asset, OnMissing, flow, task
    >>> raw, table = Asset("s3://lake/raw"), Asset("s3://lake/table")
    >>> @task(inlets=[raw], outlets=[table])
    ... def build(): ...
    >>> @flow(schedule=OnMissing())
    ... def core():
    ...     build()
    >>> core.schedule.describe()
    'when it was never made'

    It is an `Eager` for which neither new data nor new code starts a run. Contract 8.1.

    Parameters:
        starts, catchup, lookback, retries, retry_delay, expected_duration: as in `Eager`.
        default_partition_mapper, partition_mapper_config: as in `Eager`.

    Raises:
        InvalidSchedule, InvalidPartition: as in `Eager`.
    """

    def __init__(
        self,
        *starts: Asset | AssetRef | AssetLike,
        catchup: Catchup | bool = "latest",
        lookback: int | None = None,
        retries: int = 0,
        retry_delay: timedelta = RETRY_DELAY,
        expected_duration: timedelta | None = None,
        default_partition_mapper: PartitionMapper | None = None,
        partition_mapper_config: Mapping[MapperTarget, PartitionMapper] | None = None,
    ) -> None:
        super().__init__(
            *starts,
            on=(),
            catchup=catchup,
            lookback=lookback,
            retries=retries,
            retry_delay=retry_delay,
            expected_duration=expected_duration,
            default_partition_mapper=default_partition_mapper,
            partition_mapper_config=partition_mapper_config,
        )


def _catchup(value: Catchup | bool) -> Catchup:
    if isinstance(value, bool):
        return "all" if value else "none"
    return value


def _start(value: object) -> Asset | AssetRef:
    """Return the asset or the reference that may start runs.

    Raises:
        InvalidSchedule: the value is something else; the error says what is meant instead.
    """
    found = stands_for(value)
    if isinstance(found, Asset | AssetRef):
        return found
    if isinstance(found, AssetAlias):
        raise InvalidSchedule(
            f"{found!r} cannot start an Eager flow: an alias stands for no data that could be compared",
            rule="8.1",
            fix="Name assets or references",
        )
    if isinstance(found, Condition):
        raise InvalidSchedule(
            f"Eager takes assets, not the condition {found.describe()}: it waits until all that it reads is there, and "
            "each new version starts a run",
            rule="8.1",
            fix="Write Eager(a, b), or schedule=a & b for a run when both were updated",
        )
    raise not_a(
        InvalidSchedule, value, "an asset or a reference", 'Write Eager(Asset("s3://bucket/orders"))', rule="8.1"
    )


class Lazy(ScheduleLike):
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
        keeping = Keeping("lazy", retries=retries, retry_delay=retry_delay, expected_duration=expected_duration)
        self._schedule = Schedule(keeping=keeping)
