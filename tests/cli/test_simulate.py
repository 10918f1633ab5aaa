"""`assetflow simulate` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assetflow.cli import main

SCENARIO = {"name": "one", "consumers": {"c": "s3://b/a"}, "steps": [{"event": "s3://b/a"}, {"tick": True}]}
EXPLODES = SCENARIO | {"name": "two", "steps": [{"event": "x"}, {"explode": 1}]}
ANSWER = {
    "name": "one",
    "runs": [{"step": 1, "consumer": "c", "events": [{"asset": "s3://b/a", "step": 0}]}],
    "queued": {},
    "pending_partitions": {},
}
FLOWS = """
from assetflow.core.assets import Asset
from assetflow.core.codec.schedules import FlowDeclaration
from assetflow.core.schedules import ConsumerOptions, to_schedule

class Flow:
    def __init__(self, name, schedule):
        self.name = name
        self.declaration = FlowDeclaration(ConsumerOptions(to_schedule(schedule)))

producer = Flow("producer", None)
report = Flow("orders-report", Asset("s3://b/a") & Asset("s3://b/b"))
"""


class Result:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def assetflow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Result:
        monkeypatch.setattr("sys.argv", ["assetflow", *map(str, arguments)])
        status: Any = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
        out, err = capsys.readouterr()
        return Result(status, out, err)

    return run


def write(file: Path, data: object) -> Path:
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return file


def test_one_scenario_gives_an_object(assetflow: Any, tmp_path: Path) -> None:
    result = assetflow("simulate", write(tmp_path / "s.json", SCENARIO), "--json")

    assert (result.status, json.loads(result.out), result.err) == (0, ANSWER, "")


def test_list_gives_a_list(assetflow: Any, tmp_path: Path) -> None:
    result = assetflow("simulate", write(tmp_path / "s.json", [SCENARIO]), "--json")

    assert json.loads(result.out) == [ANSWER]


def test_several_files_give_one_flat_list(assetflow: Any, tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", SCENARIO)
    second = write(tmp_path / "b.json", [SCENARIO, SCENARIO])

    assert json.loads(assetflow("simulate", first, second, "--json").out) == [ANSWER] * 3


def test_yaml_means_the_same(assetflow: Any, tmp_path: Path) -> None:
    text = """
name: one
start: 2026-01-01T00:00:00Z
consumers: {c: "s3://b/a"}
steps:
  - event: s3://b/a
  - {tick: true, at: 2026-01-01T00:05:00Z}
"""
    assert json.loads(assetflow("simulate", write(tmp_path / "s.yaml", text), "--json").out) == ANSWER


def test_errors_in_the_answer_are_no_failure(assetflow: Any, tmp_path: Path) -> None:
    broken = SCENARIO | {"steps": [{"event": "s3://"}]}

    result = assetflow("simulate", write(tmp_path / "s.json", broken), "--json")

    assert result.status == 0
    assert [error["step"] for error in json.loads(result.out)["errors"]] == [0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps([SCENARIO, EXPLODES]), "scenario 'two', step 1"),
        ("{", "cannot be read"),
        ("null", "is no object"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_bad_file_is_a_message_and_status_2(assetflow: Any, tmp_path: Path, text: str, said: str) -> None:
    result = assetflow("simulate", write(tmp_path / "bad.json", text), "--json")

    assert result.status == 2
    assert result.out == ""
    assert "bad.json" in result.err
    assert said in result.err
    assert "Traceback" not in result.err


def test_missing_file_is_a_message_and_status_2(assetflow: Any, tmp_path: Path) -> None:
    result = assetflow("simulate", tmp_path / "nobody.json")

    assert result.status == 2
    assert "nobody.json" in result.err


def test_timeline_tells_what_ran_what_waits_and_what_failed(assetflow: Any, tmp_path: Path) -> None:
    steps = [{"event": "s3://b/a"}, {"event": "s3://[red]/a"}, {"event": "s3://"}, {"get_queued": {"consumer": "d"}}]
    data = SCENARIO | {
        "steps": steps,
        "passes": "live",
        "receipts": True,
        "consumers": {"c": "s3://b/a", "d": ["s3://b/a", "s3://b/b"], "t": {"cron": "@hourly"}},
    }

    result = assetflow("simulate", write(tmp_path / "s.json", data))

    text = " ".join(result.out.replace("│", " ").split())
    assert result.status == 0
    for part in ("▶ c runs with", "▶ t runs at", "waiting: d has s3://b/a (step 0)", "✗", "receipts", "s3://[red]/a"):
        assert part in text


def test_flows_of_a_module_are_the_consumers(assetflow: Any, tmp_path: Path) -> None:
    flows = write(tmp_path / "my_flows.py", FLOWS)
    events = write(tmp_path / "events.yaml", "- event: s3://b/a\n- event: s3://b/b\n")

    result = assetflow("simulate", "--flows", flows, "--events", events, "--json")

    runs = json.loads(result.out)["runs"]
    assert [(run["step"], run["consumer"], len(run["events"])) for run in runs] == [(1, "orders-report", 2)]


@pytest.mark.parametrize("text", ["import nothing_that_exists", "1 / 0", "", "def"])
def test_module_that_does_not_help_is_a_message(assetflow: Any, tmp_path: Path, text: str) -> None:
    flows = write(tmp_path / "my_flows.py", text)
    events = write(tmp_path / "events.yaml", "[]")

    result = assetflow("simulate", "--flows", flows, "--events", events)

    assert result.status == 2
    assert "my_flows.py" in result.err
