"""Circles of flows, from the runs that they made."""

from uuid import UUID

from assetflow.testing.background import StartedRun, circle_to


def runs(*made: tuple[str, list[int]]) -> dict[UUID, StartedRun]:
    """Runs by their number, each with its flow and those whose updates started it."""
    return {
        UUID(int=number): StartedRun(name, tuple(UUID(int=each) for each in causes))
        for number, (name, causes) in enumerate(made)
    }


def test_two_flows_that_start_each_other() -> None:
    made = runs(("a", [99]), ("b", [0]), ("a", [1]), ("b", [2]))
    assert circle_to(UUID(int=2), made) == ["a", "b", "a"]
    assert circle_to(UUID(int=3), made) == ["b", "a", "b"]


def test_a_chain_and_a_diamond_are_not_circles() -> None:
    made = runs(("load", []), ("a", [0]), ("b", [0]), ("c", [1, 2]), ("mail", [3]))
    assert circle_to(UUID(int=4), made) == []
