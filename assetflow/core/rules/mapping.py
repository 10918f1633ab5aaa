"""The target keys under which a consumer queues an event (contract 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from assetflow.core.condition_tree import Token
from assetflow.core.partitions import check_key
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.errors import InvalidEvent, MappingError


def target_keys_of(consumer: Consumer, event: AssetEvent, tokens: frozenset[Token]) -> Sequence[str | None]:
    """Return the target keys of an event for a consumer, each once; `(None,)` for a plain consumer.

    Contract 5.1.

    Parameters:
        tokens: the tokens of the event's asset, by which its mapper is found.

    Raises:
        MappingError: the mapper cannot read the event's key, or gives too many target keys or an invalid one. Contract
            5.4.
    """
    if event.partition_key is None:
        return (None,)
    partitioning = consumer.schedule.partitioning
    if partitioning is None:
        return (None,)
    keys = tuple(dict.fromkeys(partitioning.mapper_for(tokens).to_downstream(event.partition_key)))
    for key in keys:
        _check_target_key(key, event.partition_key)
    return keys


def _check_target_key(key: str, of: str) -> None:
    """Check a target key as any partition key: it becomes the key of the run's own updates. Contract 2.5."""
    try:
        check_key(key)
    except InvalidEvent as error:
        raise MappingError(
            f"The partition key {of!r} gives an invalid target key: {error.message}",
            fix="Change the formats of the mapper, or the key",
            rule="5.4",
        ) from error
