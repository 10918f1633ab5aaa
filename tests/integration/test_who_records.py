"""When and by whom an update is recorded: transactions, runs by hand, `emit`, on a real Prefect server (chapter 2)."""

from collections.abc import Generator

import pytest
from prefect.transactions import transaction

from assetflow import AssetAlias, Metadata, emit, task
from tests.integration.recorded import fresh, in_flow, new_events, recorded

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

A = fresh("a")


@task(outlets=[A])
def plain(value: int = 1) -> int:
    return value


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
