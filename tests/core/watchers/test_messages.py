"""What becomes of messages: one recording for each, or one for a batch (10.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assetflow import Asset
from assetflow.core.watchers.intake import Message, Watched, WatcherIntake, intake_of
from assetflow.watchers import MessageQueueTrigger

LONE = b"\\ud800"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def watched(name: str, within: timedelta | None = None) -> Watched:
    trigger = MessageQueueTrigger("amqp://mq", queue="q", partition_key="day", within=within)
    return Watched(name, trigger, (Asset(name),))


def intake(*watchers: Watched, bodies: tuple[bytes, ...]) -> WatcherIntake:
    return intake_of([(Message(body), str(n)) for n, body in enumerate(bodies)], watchers, "source", "Queue", NOW)


def test_rule_10_2_a_batch_is_one_recording_for_the_watchers_that_ask_for_it() -> None:
    given = intake(
        watched("batch", timedelta(seconds=5)), watched("each"), bodies=(b'{"day": "1"}', b"{", b'{"day": "2"}')
    )
    assert [[event.uri for event in each.events] for each in given.recordings] == [
        ["each"],
        ["each"],
        ["batch", "batch"],
    ]
    assert [each.watchers for each in given.refused] == [("batch", "each")]
    assert given.poison == [1]


def test_rule_10_2_the_ids_of_updates_do_not_depend_on_the_batch() -> None:
    bodies = (b'{"day": "1"}', b'{"day": "2"}')
    alone, batch = (intake(watched("a", within), bodies=bodies) for within in (None, timedelta(seconds=5)))
    assert [each.id for r in alone.recordings for each in r.events] == [each.id for each in batch.recordings[0].events]


@pytest.mark.parametrize("option", ["partition_key", "alias", "asset"])
def test_rule_10_2_null_is_not_a_name(option: str) -> None:
    reads: Any = {option: "order.name"}
    each = Watched("w", MessageQueueTrigger("amqp://mq", queue="q", **reads), (Asset("a"),))
    given = intake(each, bodies=(b'{"order": {"name": null}}',))
    assert (given.recordings, given.poison) == ([], [0])
    assert "null at order.name" in given.refused[0].reason


@pytest.mark.parametrize(
    "options",
    [{}, {"extra": "ok", "partition_key": "bad"}, {"extra": "ok", "alias": "bad"}, {"extra": "ok", "asset": "bad"}],
)
def test_a_message_with_half_a_character_is_refused(options: dict[str, Any]) -> None:
    each = Watched("w", MessageQueueTrigger("amqp://mq", queue="q", **options), (Asset("a"),))
    given = intake(each, bodies=(b'{"ok": 1, "bad": "' + LONE + b'"}',))
    assert (len(given.recordings), len(given.refused), given.poison) == (0, 1, [0])
