"""Where the clock of a simulation looks between the steps."""

from __future__ import annotations

from assetflow.core.simulate import simulate


def test_rule_9_6_a_queue_that_an_operator_emptied_does_not_hold_back_the_pass_of_a_later_update() -> None:
    together = {"within": {"seconds": 1200, "of": {"all": ["s3://b/a", "s3://b/b"]}}}
    steps = [
        {"event": "s3://b/a", "at": "2026-01-01T00:10:00Z"},
        {"delete_queued": {"consumer": "c"}, "at": "2026-01-01T00:20:00Z"},
        {"event": "s3://b/a", "at": "2026-01-01T01:00:00Z"},
        {"event": "s3://b/b", "at": "2026-01-01T01:00:00Z"},
        {"pause": "c", "at": "2026-01-01T01:00:00Z"},
    ]

    answer = simulate({"name": "s", "passes": "timed", "consumers": {"c": together}, "steps": steps})

    assert [(run["at"], run["step"]) for run in answer["runs"]] == [("2026-01-01T01:00:00Z", 3)]  # type: ignore[union-attr]


def test_rule_9_6_an_update_counts_at_its_instant_although_a_resume_came_before_it_at_the_same_time() -> None:
    hourly = {"schedule": {"asset_and_time": {"cron": "0 * * * *", "assets": "s3://b/a"}}, "while_paused": "keep"}
    steps = [
        {"pause": "c", "at": "2026-01-01T00:10:00Z"},
        {"resume": "c", "at": "2026-01-01T00:30:00Z"},
        {"event": "s3://b/a", "at": "2026-01-01T00:30:00Z"},
    ]

    answer = simulate({"name": "s", "passes": "timed", "consumers": {"c": hourly}, "steps": steps})

    assert [run["at"] for run in answer["runs"]] == ["2026-01-01T00:30:00Z"]  # type: ignore[union-attr]


def test_rule_9_8_a_missed_deadline_of_a_key_is_not_forgotten_by_a_redeploy() -> None:
    keyed = {"partitioned": {"assets": {"all": ["s3://b/a", "s3://b/b"]}}}
    late = {"schedule": keyed, "coalesce": True, "deadline": 1800, "on_deadline": "run"}
    steps = [
        {"task": {"outlets": ["s3://b/a", "s3://b/b"], "partition_key": "k"}, "at": "2026-01-01T00:10:00Z"},
        {"event": "s3://b/a", "partition_key": "k", "at": "2026-01-01T00:20:00Z"},
        {"redeploy": {"c": late | {"while_paused": "keep"}}, "at": "2026-01-01T01:00:00Z"},
        {"finish": "c", "at": "2026-01-01T01:10:00Z"},
    ]

    answer = simulate({"name": "s", "passes": "timed", "consumers": {"c": late}, "steps": steps})

    assert [(run["at"], "deadline" in run) for run in answer["runs"]] == [  # type: ignore[union-attr]
        ("2026-01-01T00:10:00Z", False),
        ("2026-01-01T01:10:00Z", True),
    ]


def test_rule_9_14_what_has_expired_for_a_key_does_not_come_back_with_a_redeploy() -> None:
    together = {"within": {"seconds": 3600, "of": {"all": ["s3://b/a", "s3://b/b"]}}}
    keyed = {"mappers": [["s3://b/a", {"static": {"x": ["k1", "k2"]}}]]}
    by_time, without = (
        {"asset_and_time": {"cron": "0 6 * * *", "assets": {"partitioned": keyed | {"assets": assets}}}}
        for assets in (together, together["within"]["of"])
    )
    steps = [
        {"event": "s3://b/a", "partition_key": "x", "at": "2026-01-01T00:10:00Z"},
        {"event": "s3://b/b", "partition_key": "k2", "at": "2026-01-01T00:20:00Z"},
        {"redeploy": {"c": without}, "at": "2026-01-01T02:00:00Z"},
    ]
    answer = simulate({"name": "s", "passes": "timed", "receipts": True, "consumers": {"c": by_time}, "steps": steps})

    receipts = [(each["event"], each["partition_key"], each["status"]) for each in answer["receipts"]]  # type: ignore[union-attr]
    assert receipts == [(1, "k1", "expired"), (1, "k2", "queued"), (2, "k2", "queued")]
