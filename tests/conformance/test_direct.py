"""The direct cases: URIs, mappers and time tables, called as a user calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.direct import result_of

DIRECTORY = Path(__file__).parent / "direct"
FILES = sorted(DIRECTORY.glob("*.json"))


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{number}")
        for path in FILES
        for number, case in enumerate(json.loads(path.read_text()))
    ]


def test_all_kinds_have_cases() -> None:
    assert [path.stem for path in FILES] == ["mapper_cases", "timetable_cases", "uri_cases", "window_mapper_cases"]


@pytest.mark.rule("1.3", "1.4", "5.1", "6.2")
@pytest.mark.parametrize("case", cases())
def test_case(case: dict[str, Any]) -> None:
    assert result_of(case) == case["expected"]


def test_the_command_prints_one_list_and_nothing_else(tmp_path: Path) -> None:
    chosen = [{"input": {"name": "s3://u:p@b/k?token=x"}}, {"mapper": "chain"}, {"mapper": "day", "down": ["x"]}]
    file = tmp_path / "mixed.json"
    file.write_text(json.dumps(chosen))
    command = [sys.executable, "-m", "tests.conformance.direct", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert json.loads(done.stdout) == [
        {"uri": "s3://b/k?token=x", "warning": True},
        {"error": True},
        {"down": {"x": {"error": True}}},
    ]
    assert done.stderr == ""
