"""Listings of files: what counts at a look, and what it becomes (10.4, 10.7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.triggers import FileTrigger, Per, Start
from assetflow.core.watchers.files import Listing, Look, SeenFile, intake_of, look
from assetflow.core.watchers.intake import Watched

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


@pytest.mark.parametrize("changed", [LARGE, SeenFile(1, "t2"), SeenFile(1, "t1", "v2")])
def test_rule_10_7_in_an_object_store_a_file_counts_at_the_first_look(changed: SeenFile) -> None:
    assert look({"a": SMALL}, {}, {"a": changed}, is_store=True) == Look({"a": changed}, [], {})


def test_rule_10_7_a_file_that_is_gone_leaves_the_cursor() -> None:
    found = look({"a": SMALL, "b": SMALL}, {}, {"b": SMALL}, is_store=False)
    assert found == Look({}, ["a"], {})
    step = intake_of(found, watched(), "file://", NOW).cursor
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
    intake = intake_of(Look(files, (), {}), watched(start=start, begun=begun), "file://", NOW)
    assert len(intake.recordings) == updates
    assert intake.cursor is not None
    assert list(intake.cursor.known) == list(files)


def test_rule_10_2_a_path_without_the_key_is_refused() -> None:
    expression = r"(?:date=(?P<key>[0-9]+)/)?[a-z]+\.csv"
    each = Watched("landing", FileTrigger("/in/**/*.csv", partition_key=expression), (ASSET,), begun=True)
    intake = intake_of(Look({"/in/a.csv": SMALL, "/in/date=1/b.csv": SMALL}, (), {}), each, "file://", NOW)
    assert [event.partition_key for each in intake.recordings for event in each.events] == ["1"]
    assert ["has no key" in refused.reason for refused in intake.refused] == [True]


def test_rule_10_2_the_same_file_found_again_is_the_same_update_whatever_the_watcher_is_called() -> None:
    found = Look({"/in/a.json": SMALL}, (), {})
    ids = {
        event.id
        for name in ("landing", "other")
        for recording in intake_of(found, replace(watched(), name=name), "file://", NOW).recordings
        for event in recording.events
    }
    assert len(ids) == 1
