"""Cases of `freshness/rules.json` are seen to fail with a broken copy of the rule that they watch over."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from assetflow.core.freshness import deploying, judging, reads, recording
from assetflow.core.freshness.judging import Upcoming
from assetflow.core.simulate import simulate
from tests.conformance.comparison import differences
from tests.conformance.test_cases import HERE

Break = Callable[[pytest.MonkeyPatch], None]


def good_runs_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    note = recording._note

    def without_good(freshness: Any, node: Any, **changes: Any) -> None:
        note(freshness, node, **{name: moment for name, moment in changes.items() if name != "good"})

    patch.setattr(recording, "_note", without_good)


def nobody_became_eager(patch: pytest.MonkeyPatch) -> None:
    """Let a flow wait only for what has ended no run since its cause, whenever it became Eager."""
    patch.setattr(judging, "max", lambda _, oldest: oldest, raising=False)


def only_keys_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    reads = Upcoming._reads
    patch.setattr(Upcoming, "_reads", lambda *given: given[-1] is not None and reads(*given))


def nothing_was_owed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deploying, "_out_of_date_before", lambda *_: {})


def failures_outlive_new_code(patch: pytest.MonkeyPatch) -> None:
    remember = deploying._remember

    def with_failure(freshness: Any, old: Any, node: Any, now: Any) -> None:
        before = freshness.flow_record(node.id)
        remember(freshness, old, node, now)
        if before is not None:
            freshness.save_flow(node.id, replace(freshness.flow_record(node.id), failed=before.failed))

    patch.setattr(deploying, "_remember", with_failure)


def mappers_are_no_inputs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reads, "_are_of_same_flow", lambda *_: True)


BROKEN: list[tuple[Break, str]] = [
    (good_runs_are_forgotten, "root_above_a_failure"),
    (nobody_became_eager, "becomes_eager_beside_its_maker"),
    (only_keys_are_waited_for, "keys_wait_for_a_plain_input"),
    (nothing_was_owed, "failed_keys_after_a_bugfix"),
    (failures_outlive_new_code, "bugfix_of_a_lazy_flow"),
    (mappers_are_no_inputs, "other_mapper_after_a_failure"),
]


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=[name for _, name in BROKEN])
def test_a_broken_copy_breaks_the_case(broken: Break, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = (HERE / "freshness" / f"rules{end}.json" for end in ("", ".expected"))
    scenarios, answers = (json.loads(file.read_text()) for file in files)
    number = [each["name"] for each in scenarios].index(name)
    broken(monkeypatch)
    assert differences(answers[number], simulate(scenarios[number]), receipts=False)
