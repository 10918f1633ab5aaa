"""Example 8: AND, OR and both, and what a run consumes."""

import pytest

from tests.examples.simulated import runs, task, updates


def both(*members: object) -> dict[str, object]:
    return {"all": list(members)}


def either(*members: object) -> dict[str, object]:
    return {"any": list(members)}


@pytest.mark.rule("4.1")
def test_and_needs_both_and_or_runs_once_per_task() -> None:
    assert runs({"c": both("a", "b")}, updates("a")) == {"c": []}
    assert runs({"c": both("a", "b")}, updates("a", "b")) == {"c": [["a", "b"]]}
    assert runs({"c": either("a", "b")}, [task("a"), task("b")]) == {"c": [["a"], ["b"]]}
    assert runs({"c": either("a", "b")}, [task("a", "b")]) == {"c": [["a", "b"]]}
    found = runs({"c": either("a", "b", "c", "d")}, updates("a", "b", "c", "d"))
    assert found == {"c": [["a"], ["b"], ["c"], ["d"]]}


def test_and_and_or_in_one_another() -> None:
    found = runs({"c": either("a", both("b", "c"))}, updates("b", "a", "c", "b"))
    assert found == {"c": [["b", "a"], ["c", "b"]]}
    found = runs({"c": both(either("a", "b"), either("c", "d"))}, updates("a", "b", "c"))
    assert found == {"c": [["a", "b", "c"]]}
