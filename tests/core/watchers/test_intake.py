"""What becomes of files and messages: what counts at a look, and in which recordings (10.2, 10.4, 10.7)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.triggers import FileTrigger, Per, Start
from assetflow.core.watchers.files import Listing, Look, SeenFile, look
from assetflow.core.watchers.files import intake_of as intake_of_files
from assetflow.core.watchers.intake import Message, Watched, WatcherIntake, intake_of
from assetflow.watchers import MessageQueueTrigger

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL, LARGE = SeenFile(1, "t1"), SeenFile(2, "t1")
ASSET = Asset("s3://lake/in")


def test_rule_10_7_a_file_counts_when_it_stands_still() -> None:
    first = look({}, {}, {"a": SMALL}, is_store=False)
    assert first == Look({}, [], {"a": SMALL})
    growing = look({}, first.unsettled, {"a": LARGE}, is_store=False)
    assert growing == Look({}, [], {"a": LARGE})
    still = look({}, growing.unsettled, {"a": LARGE}, is_store=False)
    assert still == Look({"a": LARGE}, [], {})
    assert look({"a": LARGE}, {}, {"a": LARGE}, is_store=False) == Look({}, [], {})


def test_rule_10_7_a_file_that_is_gone_leaves_the_cursor() -> None:
    found = look({"a": SMALL, "b": SMALL}, {}, {"b": SMALL}, is_store=False)
    assert found == Look({}, ["a"], {})
    step = intake_of_files(found, watched(), "file://", NOW).cursor
    assert step is not None
    assert (step.known, step.gone) == ({}, ["a"])


def watched(*, start: Start = "known", per: Per = "file", begun: bool = True) -> Watched:
    trigger = FileTrigger("/in/*.json", start=start, per=per)
    return Watched("landing", trigger, (ASSET,), begun)


@pytest.mark.parametrize(
    ("begun", "start", "updates"), [(False, "known", 0), (False, "existing", 2), (True, "known", 2)]
)
def test_rule_10_4_a_new_watcher_takes_what_is_there_as_known(begun: bool, start: Start, updates: int) -> None:
    files: Listing = {"/in/a.json": SMALL, "/in/b.json": LARGE}
    intake = intake_of_files(Look(files, (), {}), watched(start=start, begun=begun), "file://", NOW)
    assert len(intake.recordings) == updates
    assert intake.cursor is not None
    assert list(intake.cursor.known) == list(files)


def test_rule_10_2_a_path_without_the_key_is_refused() -> None:
    expression = r"(?:date=(?P<key>[0-9]+)/)?[a-z]+\.csv"
    each = Watched("landing", FileTrigger("/in/**/*.csv", partition_key=expression), (ASSET,), begun=True)
    intake = intake_of_files(Look({"/in/a.csv": SMALL, "/in/date=1/b.csv": SMALL}, (), {}), each, "file://", NOW)
    assert [event.partition_key for each in intake.recordings for event in each.events] == ["1"]
    assert ["has no key" in refused.reason for refused in intake.refused] == [True]


LONE = b"\\ud800"


def queued(name: str, within: timedelta | None = None) -> Watched:
    trigger = MessageQueueTrigger("amqp://mq", queue="q", partition_key="day", within=within)
    return Watched(name, trigger, (Asset(name),))


def intake(*watchers: Watched, bodies: tuple[bytes, ...]) -> WatcherIntake:
    return intake_of([(Message(body), str(n)) for n, body in enumerate(bodies)], watchers, "source", "Queue", NOW)


def test_rule_10_2_a_batch_is_one_recording_for_the_watchers_that_ask_for_it() -> None:
    given = intake(
        queued("batch", timedelta(seconds=5)), queued("each"), bodies=(b'{"day": "1"}', b"{", b'{"day": "2"}')
    )
    uris = [["each"], ["each"], ["batch", "batch"]]
    assert [[event.uri for event in each.events] for each in given.recordings] == uris
    assert [each.watchers for each in given.refused] == [("batch", "each")]
    assert given.poison == [1]


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
