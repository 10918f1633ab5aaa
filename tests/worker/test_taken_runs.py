"""Notes of flow runs outlive their worker, and say what became of its runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from assetflow.worker import client
from assetflow.worker.taken_runs import SECONDS_TO_BEGIN, AbandonedRun, Fate, TakenRuns, fate, held

NOW = 1_000_000.0
LONG_AGO = NOW - SECONDS_TO_BEGIN
RUN = uuid4()


@pytest.mark.parametrize(
    ("state", "began", "since", "was_taken", "expected"),
    [
        ("PENDING", False, NOW - 1, True, "wait"),
        ("PENDING", False, LONG_AGO, True, "schedule"),
        ("PENDING", True, LONG_AGO, True, "schedule"),
        # A living worker has it, for however long it takes.
        ("PENDING", False, LONG_AGO, False, "forget"),
        ("SCHEDULED", False, NOW - 1, False, "wait"),
        ("SCHEDULED", False, LONG_AGO, False, "forget"),
        ("SCHEDULED", True, LONG_AGO, True, "forget"),
        ("RUNNING", True, NOW - 1, True, "crash"),
        ("RUNNING", True, NOW - 1, False, "forget"),
        ("RUNNING", False, LONG_AGO, True, "forget"),
        ("CANCELLING", True, NOW - 1, True, "cancel"),
        ("CANCELLING", True, NOW - 1, False, "forget"),
        ("CANCELLING", False, NOW - 1, True, "wait"),
        ("CANCELLING", False, LONG_AGO, True, "cancel"),
        ("COMPLETED", True, NOW - 1, True, "forget"),
    ],
)
def test_the_fate_of_a_run(state: str, began: bool, since: float, was_taken: bool, expected: Fate) -> None:
    run = AbandonedRun(Path(str(RUN)), noted=LONG_AGO, began=began)
    assert fate(run, state, since, was_taken, NOW) == expected


@pytest.mark.parametrize(
    ("state", "since", "expected"),
    [
        ("PENDING", NOW - 1, "wait"),
        # What its command has done before the flow run began is not known.
        ("PENDING", LONG_AGO, "crash"),
        ("RUNNING", NOW - 1, "crash"),
        ("CANCELLING", NOW - 1, "cancel"),
        ("SCHEDULED", LONG_AGO, "forget"),
    ],
)
def test_the_fate_of_a_run_that_was_an_ordinary_process(state: str, since: float, expected: Fate) -> None:
    run = AbandonedRun(Path(str(RUN)), noted=LONG_AGO, began=True, is_ordinary=True)
    assert fate(run, state, since, True, NOW) == expected


def found(taken: TakenRuns) -> list[tuple[UUID, bool]]:
    """The abandoned runs that nobody holds."""
    runs: list[tuple[UUID, bool]] = []
    for note in taken.abandoned():
        with held(note) as run:
            if run is not None:
                runs.append((run.id, run.began))
    return runs


@contextmanager
def a_worker_that_dies(folder: Path) -> Iterator[TakenRuns]:
    """A worker whose notes are left when it ends, as those of a killed one are."""
    with TakenRuns(folder, "dead") as taken:
        yield taken


def test_the_notes_of_a_dead_worker_are_found_and_its_folder_ends_with_them(tmp_path: Path) -> None:
    with TakenRuns(tmp_path, "living") as living:
        with a_worker_that_dies(tmp_path) as dying:
            note = dying.note(RUN)
            assert found(living) == []
        assert found(living) == [(RUN, False)]
        note.write_bytes(client.BEGAN)
        with held(note) as run:
            assert run is not None
            assert found(living) == []
        assert found(living) == [(RUN, True)]
        run.forget()
        assert found(living) == []
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []
