"""The layout on disk survives a kill at any point, and reaches the disk meanwhile; no Spark is needed to show that."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.spark import layout as layout_module
from assetflow.spark.layout import DatasetLayout
from tests.spark.publisher import publish_text

FOLDER = Path(__file__).parent


def content(path: Path) -> str:
    return (path / "part-0.parquet").read_text()


def version_runs(path: Path) -> list[str]:
    return [each.name.partition("-")[2] for each in DatasetLayout(path).versions()]


def publish_and_die(path: Path, text: str, run: str, point: str) -> None:
    """Publish in a process of its own that is killed just before `point`."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "publisher.py"), str(path), text, run, point],
        env={**os.environ, "PYTHONPATH": str(FOLDER.parents[1])},
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return tmp_path / "orders"


@pytest.mark.parametrize(
    "point", ["mkdir", "_prune", "remove_buried", "rmdir", "write", "commit", "_next_version", "point_to", "replace"]
)
def test_killed_before_the_swap_the_old_data_is_whole_and_a_retry_cleans_up(dataset: Path, point: str) -> None:
    for number in range(1, 4):
        publish_text(dataset, f"old {number}", f"run-{number}")
    publish_and_die(dataset, "new", "run-4", point)
    assert content(dataset) == "old 3"
    assert {content(each) for each in DatasetLayout(dataset).versions()} >= {"old 2", "old 3"}
    publish_text(dataset, "newer", "run-4")
    assert content(dataset) == "newer"
    assert version_runs(dataset) == ["run-2", "run-3", "run-4"]
    assert list((DatasetLayout(dataset).versions_folder / ".staging").iterdir()) == []


@pytest.mark.parametrize("point", ["_prune:second", "discard"])
def test_killed_after_the_swap_the_new_data_is_whole(dataset: Path, point: str) -> None:
    publish_text(dataset, "old", "run-1")
    publish_and_die(dataset, "new", "run-2", point)
    assert content(dataset) == "new"
    publish_text(dataset, "newer", "run-3")
    assert content(dataset) == "newer"


def test_killed_at_the_very_first_publish_there_is_no_dataset(dataset: Path) -> None:
    publish_and_die(dataset, "new", "run-1", "point_to")
    assert not dataset.exists()
    publish_text(dataset, "new", "run-1")
    assert content(dataset) == "new"


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("point", ["exchange", "point_to"])
def test_killed_while_a_directory_is_taken_over_its_data_is_whole(dataset: Path, point: str, atomic: bool) -> None:
    dataset.mkdir()
    (dataset / "part-0.parquet").write_text("from before")
    publish_and_die(dataset, "new", "run-1", point if atomic else f"{point}:without-exchange")
    assert content(dataset) == "from before"
    publish_text(dataset, "new", "run-1")
    assert content(dataset) == "new"


def test_without_exchange_a_kill_between_renames_is_put_right(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_text(dataset, "from before", "run-0")
    versions = DatasetLayout(dataset).versions_folder
    dataset.unlink()
    (versions / "000001-run-0").rename(versions / "000001-before-assetflow")
    monkeypatch.setattr(layout_module, "exchange", lambda *_: False)
    with DatasetLayout(dataset).stage("run-1", 1):
        assert content(dataset) == "from before"


def test_a_live_attempt_is_not_cleaned_away(dataset: Path) -> None:
    with DatasetLayout(dataset).stage("run-1", 1) as first:
        first.data.mkdir()
        publish_text(dataset, "other", "run-2")
        assert first.data.is_dir()
        with DatasetLayout(dataset).lock():
            DatasetLayout(dataset).commit(first)
    assert len(DatasetLayout(dataset).versions()) == 2


def test_the_oldest_version_makes_room_before_the_next_is_written(dataset: Path) -> None:
    for number in range(1, 4):
        publish_text(dataset, str(number), f"run-{number}")
    with DatasetLayout(dataset).stage("run-4", 1) as staging:
        assert version_runs(dataset) == ["run-2", "run-3"]
        assert [each.name for each in staging.folder.iterdir()] == ["lock"]
    # It failed. Those that come after it, and its retries, push out no more.
    with DatasetLayout(dataset).stage("run-4", 2):
        pass
    publish_text(dataset, "5", "run-5")
    assert version_runs(dataset) == ["run-2", "run-3", "run-5"]


def test_who_went_back_to_an_older_version_loses_no_newer_one_to_an_attempt_that_fails(dataset: Path) -> None:
    for number in range(1, 4):
        publish_text(dataset, str(number), f"run-{number}")
    dataset.unlink()
    dataset.symlink_to(Path("orders.versions") / "000001-run-1")
    with DatasetLayout(dataset).stage("run-4", 1):
        pass
    assert version_runs(dataset) == ["run-1", "run-2", "run-3"]


def test_what_nobody_has_seen_pushes_out_no_version(dataset: Path) -> None:
    for number in range(1, 4):
        publish_text(dataset, str(number), f"run-{number}")
    publish_and_die(dataset, "4", "run-4", "point_to")
    assert version_runs(dataset) == ["run-2", "run-3", "run-4"]
    with DatasetLayout(dataset).stage("run-5", 1):
        assert version_runs(dataset) == ["run-2", "run-3", "run-4"]
    publish_text(dataset, "6", "run-6")
    assert version_runs(dataset) == ["run-2", "run-3", "run-6"]
