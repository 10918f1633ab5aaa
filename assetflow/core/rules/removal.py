"""Which queued events an operator names, and whether that is enough to remove them (contract 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import some
from assetflow.errors import InvalidCall


@dataclass(frozen=True)
class NamedEvents:
    """The queued events that an operator names; what is `None` names nothing, and then all match.

    Attributes:
        uri: the asset.
        event_id: one event.
        before: only events that were recorded before this time.
    """

    uri: str | None = None
    event_id: UUID | None = None
    before: datetime | None = None

    def has(self, event: AssetEvent) -> bool:
        """Return True if a queued event is one of them."""
        return (
            (self.uri is None or event.uri == self.uri)
            and (self.event_id is None or event.id == self.event_id)
            and (self.before is None or (event.recorded is not None and event.recorded < self.before))
        )


def check_removal(
    consumer: Consumer | None,
    target_key: str | None,
    *,
    narrowed: bool,
    pending_keys: Callable[[], Sequence[str]] = lambda: (),
) -> None:
    """Check that a removal names enough: events of a partitioned consumer need the consumer and the key.

    Contract 3.7.

    Parameters:
        consumer: the consumer whose queued events are removed; `None` for all consumers without partitions.
        target_key: the key of the pending partition, or `None`.
        narrowed: True if the removal names an asset or an event.
        pending_keys: returns the pending keys of the consumer, which the error lists.

    Raises:
        InvalidCall: something is missing, or a key is given that the consumer cannot have. `where` is `consumer` or
            `key`.
    """
    if consumer is None:
        if target_key is not None or not narrowed:
            raise InvalidCall(
                "no queue is named",
                where="consumer",
                rule="3.7",
                fix="Name a consumer; or, for queues without partitions, an asset or an event",
            )
    elif consumer.is_partitioned and not target_key:
        keys = pending_keys()
        known = f"; pending partitions: {some(list(keys))}" if keys else ""
        raise InvalidCall(
            f"the consumer {consumer.name} is partitioned{known}",
            where="key",
            rule="3.7",
            fix="Name the partition",
        )
    elif target_key is not None and not consumer.is_partitioned:
        raise InvalidCall(
            f"the consumer {consumer.name} is not partitioned", where="key", rule="3.7", fix="Leave the key out"
        )
