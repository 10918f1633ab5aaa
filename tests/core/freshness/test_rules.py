"""Chapter 8 by example: what runs, what is said of a target, and when nobody is told."""

from __future__ import annotations

from typing import Any

import pytest

from assetflow.core.simulate import simulate
from assetflow.errors import InvalidScenario

Json = dict[str, Any]

EAGER: Json = {"schedule": {"eager": {}}, "makes": ["a"], "reads": ["s"]}


def answer(consumers: Json, *steps: Json, passes: str = "tick") -> Json:
    return simulate({"name": "x", "passes": passes, "consumers": consumers, "steps": list(steps)})


def runs(found: Json) -> list[tuple[int, str]]:
    return [(run["step"], run["consumer"]) for run in found["runs"]]


def verdicts(found: Json) -> list[tuple[str, str]]:
    return [(row["consumer"], row["verdict"]) for row in found["answers"][-1]["plan"]]


def eager(**options: Any) -> Json:
    return EAGER | {"schedule": {"eager": options}}


def test_8_2_a_confirmation_is_up_to_date_without_an_event() -> None:
    steps = [{"event": "s"}, {"tick": True}, {"finish": "a"}, {"event": "s"}, {"tick": True}]
    found = answer({"a": EAGER}, *steps, {"finish": "a", "skips": ["a"]}, {"tick": True}, {"status": ["a"]})

    assert runs(found) == [(1, "a"), (4, "a")]
    assert found["answers"][0]["status"]["a"]["state"] == "fresh"


def test_8_2_only_a_source_may_be_observed() -> None:
    found = answer({"a": EAGER}, {"observe": "a", "version": "1"})

    assert [error["rule"] for error in found["errors"]] == ["8.2"]


def test_8_3_an_item_without_a_key_stands_for_all_until_keys_are_known() -> None:
    by_table = eager(partitioned={"mappers": [["s", {"static": {"de": "eu", "fr": "eu"}}]]}) | {"reads": ["s", "r"]}
    found = answer({"a": by_table}, {"event": "s"}, {"event": "r", "partition_key": "eu"}, {"tick": True})

    assert runs(found) == [(2, "a")]


def test_8_3_a_key_of_an_own_output_that_is_read_makes_no_target() -> None:
    yesterday = {"time_window": {"upstream": "day", "downstream": "day", "start_offset": -1, "end_offset": -1}}
    by_day = eager(partitioned={"mappers": [["s", {"all_keys": {}}], ["a", yesterday]]}, triggers=["s", "a"])
    found = answer({"a": by_day}, {"event": "s"}, {"event": "a", "partition_key": "2026-01-01"}, passes="live")

    assert runs(found) == []


def test_8_3_a_key_that_is_no_target_after_a_redeploy_does_not_run() -> None:
    by_key = eager(partitioned={})
    steps = [{"event": "s", "partition_key": "de"}, {"redeploy": {"a": by_key | {"reads": ["r"]}}}, {"event": "r"}]
    found = answer({"a": by_key}, *steps, {"finish": "a", "state": "failed"}, passes="live")

    assert runs(found) == [(0, "a")]


def test_8_5_an_update_during_a_run_leads_to_another_one() -> None:
    steps = [{"event": "s"}, {"tick": True}, {"event": "s"}, {"tick": True}, {"finish": "a"}, {"tick": True}]

    assert runs(answer({"a": EAGER}, *steps)) == [(1, "a"), (5, "a")]


@pytest.mark.parametrize("state", ["failed", "crashed", "cancelled"])
def test_8_6_the_same_inputs_are_not_tried_again(state: str) -> None:
    steps = [{"event": "s"}, {"tick": True}, {"finish": "a", "state": state}, {"tick": True}, {"plan": True}]
    found = answer({"a": EAGER}, *steps)

    assert runs(found) == [(1, "a")]
    assert verdicts(found) == [("a", "tried")]


def test_8_6_a_child_waits_for_a_maker_that_is_coming() -> None:
    chain = {"a": EAGER | {"takes": 60}, "b": EAGER | {"makes": ["b"], "reads": ["s", "a"], "takes": 10}}
    built = [{"event": "s"}, {"advance": 600}, {"event": "s"}]
    found = answer(chain, *built, {"plan": True, "at": "2026-01-01T00:12:30Z"}, {"advance": 600}, passes="live")

    assert verdicts(found) == [("a", "in_progress"), ("b", "waits")]
    assert runs(found)[2:] == [(2, "a"), (4, "b")]


def test_8_6_a_child_does_not_wait_for_a_maker_that_an_update_from_outside_made_up_to_date() -> None:
    maker = eager(triggers=["s"]) | {"makes": ["b"], "reads": ["a"]}
    below = EAGER | {"makes": ["c"], "reads": ["b"]}
    top = {"schedule": {"eager": {}}, "makes": ["a"]}
    found = answer({"a": top, "b": maker, "c": below}, {"event": "a"}, {"event": "s"}, {"event": "b"}, passes="live")

    assert runs(found) == [(0, "a"), (2, "c")]


def test_8_7_retry_forgets_what_was_tried() -> None:
    failed = [{"event": "s"}, {"tick": True}, {"finish": "a", "state": "failed"}]

    assert runs(answer({"a": EAGER}, *failed, {"retry": "a"}, {"tick": True})) == [(1, "a"), (4, "a")]


@pytest.mark.parametrize(("catchup", "keys"), [("none", []), ("latest", ["d2"]), ("all", ["d1", "d2"])])
def test_8_8_catchup_says_what_is_owed_after_a_pause(catchup: str, keys: list[str]) -> None:
    keyed = eager(catchup=catchup, partitioned={})
    steps = [{"pause": "a"}, *({"event": "s", "partition_key": key} for key in ("d1", "d2")), {"resume": "a"}]
    found = answer({"a": keyed}, *steps, {"tick": True})

    assert [run["partition_key"] for run in found["runs"]] == keys


def test_8_8_what_was_waived_stays_waived_over_another_deploy() -> None:
    keyed = eager(catchup="none", partitioned={}) | {"code_version": "1"}
    steps = [{"event": "s", "partition_key": "d"}, {"tick": True}, {"finish": "a"}]
    again = [{"redeploy": {"a": keyed | {"code_version": version}}} for version in ("2", "3")]
    found = answer({"a": keyed}, *steps, *again, {"tick": True}, {"plan": True})

    assert runs(found) == [(1, "a")]
    assert verdicts(found) == [("a", "waived")]


def test_8_10_an_own_output_of_earlier_periods_is_no_circle() -> None:
    yesterday = {"time_window": {"upstream": "day", "downstream": "day", "start_offset": -1, "end_offset": -1}}
    own = eager(triggers=["s", "a"], partitioned={"mappers": [["a", yesterday]]})

    assert "errors" not in answer({"a": own})
    assert answer({"a": eager(triggers=["a"])})["errors"][0]["rule"] == "8.10"


def test_8_1_a_refused_flow_is_looked_at_again() -> None:
    other = {"b": EAGER}
    found = answer({"a": EAGER, **other}, {"remove": "a"}, {"event": "s"}, {"tick": True})

    assert [(error["consumer"], error["rule"]) for error in found["errors"]] == [("b", "8.1")]
    assert runs(found) == [(2, "b")]


def test_8_13_the_same_state_is_told_once() -> None:
    policy = {"a": {"maximum_lag": 600}}
    found = answer(
        {"a": {"schedule": None, "makes": ["a"], "freshness": policy}},
        *({"run": "a"}, {"advance": 2000}, {"advance": 2000}, {"run": "a"}, {"run": "a"}),
        passes="live",
    )

    assert [each["state"] for each in found["freshness_events"]] == ["fail", "pass"]


def test_8_14_lazy_without_a_policy_below_never_runs() -> None:
    lazy = {"schedule": {"lazy": {}}, "makes": ["a"], "reads": ["s"], "takes": 1}

    assert runs(answer({"a": lazy}, {"event": "s"}, {"advance": 100_000}, passes="live")) == []


def test_8_18_a_failure_takes_off_what_is_below() -> None:
    chain = {
        "a": {"schedule": None, "makes": ["a"], "reads": ["s"]},
        "b": {"schedule": None, "makes": ["b"], "reads": ["a"]},
    }
    steps = [{"backfill": {"asset": "a", "down": True}}, {"tick": True}, {"finish": "a", "state": "failed"}]
    found = answer(chain, *steps, {"tick": True})

    assert found["backfills"] == [{"failed": [{"consumer": "a"}], "removed": [{"consumer": "b"}]}]


def test_8_18_a_removed_flow_is_taken_off_with_what_is_below() -> None:
    chain = {
        "a": {"schedule": None, "makes": ["a"], "reads": ["s"]},
        "b": {"schedule": None, "makes": ["b"], "reads": ["a"]},
        "c": {"schedule": None, "makes": ["c"], "reads": ["b"]},
    }
    steps = [{"backfill": {"asset": "a", "down": True}}, {"tick": True}, {"remove": "b"}, {"finish": "a"}]
    found = answer(chain, *steps, {"tick": True})

    assert runs(found) == [(1, "a")]
    assert found["backfills"] == [{"done": [{"consumer": "a"}], "removed": [{"consumer": "b"}, {"consumer": "c"}]}]


def test_chapters_8_and_9_share_one_clock() -> None:
    """At 06:00 the schedule opens and the deadline of a policy passes: the run of the opening comes first."""
    report = {
        "schedule": {"asset_and_time": {"cron": "0 6 * * *", "assets": "s"}},
        "makes": ["r"],
        "takes": 0,
        "freshness": {"r": {"maximum_lag": 7 * 3600, "deadline": "0 6 * * *"}},
    }
    keeps = {"schedule": {"eager": {}}, "makes": ["k"], "reads": ["r"], "takes": 0}
    steps = [{"event": "s"}, {"advance": 0, "at": "2026-01-01T07:00:00Z"}]
    found = answer({"report": report, "keeps": keeps}, *steps, passes="timed")

    assert {(run["consumer"], run["at"]) for run in found["runs"]} == {
        ("report", "2026-01-01T06:00:00Z"),
        ("keeps", "2026-01-01T06:00:00Z"),
    }
    assert "freshness_events" not in found


@pytest.mark.timeout(20)
def test_8_16_the_clock_of_a_removed_consumer_stands_still() -> None:
    hourly = {"schedule": {"cron": "@hourly"}, "makes": ["h"], "takes": 0}
    found = answer({"a": EAGER, "h": hourly}, {"remove": "h"}, {"event": "s"}, {"advance": 9000}, passes="live")

    assert runs(found) == [(0, "h"), (1, "a")]


def test_8_2_a_plain_flow_that_writes_keys_confirms_them() -> None:
    steps = [{"event": "s"}, {"run": "a", "partition_key": "de"}, {"event": "s"}, {"run": "a", "skips": ["a"]}]
    found = answer({"a": EAGER | {"schedule": None}}, *steps, {"status": [["a", "de"]]}, passes="live")

    assert found["answers"][0]["status"]["a@de"]["state"] == "fresh"


def test_8_2_the_version_follows_from_the_last_keys_that_were_read() -> None:
    last = eager(mappers=[["s", {"last": 1}]]) | {"code_version": "1"}
    below = EAGER | {"makes": ["b"], "reads": ["a"]}
    first, second = ({"event": "s", "partition_key": key, "data_version": key} for key in "de")
    again = [{"trigger": "a"}, second, {"finish": "a"}]
    found = answer({"a": last, "b": below}, first, {"finish": "a"}, {"finish": "b"}, *again, passes="live")

    # The second run has read the same as the first one, whatever came meanwhile.
    assert [run["consumer"] for run in found["runs"]] == ["a", "b", "a"]


def test_8_9_new_code_of_a_plain_flow_that_writes_keys_starts_a_run() -> None:
    first, second = (EAGER | {"code_version": version} for version in "12")
    steps = [{"event": "s"}, {"run": "a", "partition_key": "de"}, {"resume": "a"}, {"redeploy": {"a": second}}]
    found = answer({"a": first}, {"pause": "a"}, *steps, passes="live")

    assert [(run["step"], run["because"]) for run in found["runs"]] == [(4, [{"kind": "code"}])]


def test_8_12_what_was_read_by_another_mapper_stays_what_it_was() -> None:
    by_key = eager(partitioned={}) | {"freshness": {"a": {"maximum_lag": 3600}}}
    other = eager(partitioned={"mappers": [["s", {"last": 1}]]}) | {"freshness": by_key["freshness"]}
    steps = [
        {"event": "s", "partition_key": "d", "data_version": "1"},
        {"finish": "a"},
        {"event": "s", "partition_key": "d", "data_version": "2"},
        {"finish": "a", "state": "failed"},
        {"redeploy": {"a": other}},
        {"event": "s", "partition_key": "e", "data_version": "1"},
    ]
    found = answer({"a": by_key}, *steps, {"freshness": ["a"]}, passes="live")

    assert found["answers"][0]["freshness"]["a"]["data_time"] == "2026-01-01T00:03:00Z"


@pytest.mark.parametrize("takes", [0, 0.000001])
def test_flows_that_keep_each_other_running_are_refused_by_name(takes: float) -> None:
    circle = {
        "a": {"schedule": "b", "makes": ["a"], "takes": takes},
        "b": {"schedule": "a", "makes": ["b"], "takes": takes},
    }

    with pytest.raises(InvalidScenario, match=r"keep each other running: (a → b → a|b → a → b)\."):
        answer(circle, {"event": "a"}, {"advance": 3600}, passes="live")
