"""When and by whom an update is recorded: transactions, runs by hand, `emit`, on a real Prefect server (chapter 2)."""

from collections.abc import Generator
from typing import Any

import pytest
from prefect import task as prefect_task
from prefect.client.schemas.objects import State
from prefect.states import Failed
from prefect.transactions import transaction

from assetflow import AssetAlias, Metadata, emit, task
from tests.integration.recorded import fresh, in_flow, new_events, recorded

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

A, B = fresh("a"), fresh("b")


@task(outlets=[A])
def plain(value: int = 1) -> int:
    return value


@task(outlets=[A])
def returning_failed() -> State[None]:
    return Failed(message="not today")


@task(outlets=[A])
def generator(value: int = 1) -> Generator[Metadata, None, int]:
    yield Metadata(A, {"value": value})
    return value


# Transactions


@pytest.mark.rule("2.1")
def test_in_a_users_transaction_the_event_counts_when_that_commits() -> None:
    seen: list[int] = []

    def body() -> None:
        with transaction():
            plain()
            generator.submit(2).wait()
            seen.append(len(recorded(A)))

    before = len(recorded(A))
    in_flow(body)
    assert seen == [before]
    assert len(recorded(A)) == before + 2


@pytest.mark.rule("2.1")
def test_what_is_rolled_back_makes_no_event() -> None:
    def body() -> None:
        with transaction():
            plain()
            raise ValueError("roll back")

    with new_events(A) as events, pytest.raises(ValueError, match="roll back"):
        in_flow(body)
    assert not events


def test_a_task_that_returns_a_failed_state_is_rolled_back_and_makes_no_event() -> None:
    rolled_back: list[object] = []
    undone = returning_failed.with_options(name="undone")
    undone.on_rollback_hooks = [rolled_back.append]
    with new_events(A) as events:
        state: State[None] = in_flow(lambda: undone(return_state=True))
    assert (state.is_failed(), len(rolled_back), len(events)) == (True, 1, 0)


@pytest.mark.parametrize("outer", [prefect_task, task(outlets=[B])], ids=["plain", "with outlets"])
def test_a_nested_task_records_at_its_own_end(outer: Any) -> None:
    counts: list[int] = []

    @outer
    def nesting() -> None:
        plain()
        counts.append(len(recorded(A)))
        with transaction():
            plain()
            counts.append(len(recorded(A)))

    before = len(recorded(A))
    in_flow(nesting)
    assert counts == [before + 1, before + 1]
    assert len(recorded(A)) == before + 2


# Who records


@pytest.mark.parametrize(("emit_setting", "made"), [("always", 1), ("deployed", 0), ("never", 0)])
def test_runs_by_hand_record_if_asked_to(monkeypatch: pytest.MonkeyPatch, emit_setting: str, made: int) -> None:
    monkeypatch.setenv("ASSETFLOW_EMIT", emit_setting)
    with new_events(A) as events:
        assert in_flow(plain) == 1
    assert len(events) == made


@pytest.mark.filterwarnings("ignore:Logger 'prefect.task_runs' attempted to send logs:UserWarning")
def test_a_task_without_a_flow_records_too() -> None:
    with new_events(A) as events:
        plain()
    assert events[0].source_flow_run is None
    assert events[0].source_task_run is not None


# emit


@pytest.mark.rule("2.2")
def test_emit_records_at_once_and_an_id_makes_it_one_event() -> None:
    with new_events(A) as events:
        first = emit(A, {"a": 1}, partition_key="k", aliases=["x", AssetAlias("w")])
        emit(A.uri, id=first.id)
    assert events[0] == first
    assert (events[0].extra, events[0].partition_key, events[0].aliases) == ({"a": 1}, "k", ("w", "x"))
    assert events[0].origin.kind == "api"
    assert {event.id for event in events} == {first.id}
