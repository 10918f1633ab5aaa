"""Where the clock of a simulation looks between the steps."""

from __future__ import annotations

from assetflow.core.simulation import simulate


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
