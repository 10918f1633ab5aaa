"""Commands, called in this process, on a ledger of each test's own."""

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assetflow.cli import run
from assetflow.ledger import Ledger
from tests.environment.prefect_settings import prefect_at

API_URL = "http://127.0.0.1:9/api"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(columns: int, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal that what is printed goes to."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    return screen


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Answer]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ledger(home: Path, new_ledger: Path) -> Iterator[Ledger]:
    """The ledger that the commands find; it belongs to a Prefect that nobody can reach."""
    shutil.copy(new_ledger, home / "ledger.db")
    with prefect_at(API_URL), Ledger.open(home / "ledger.db") as ledger:
        ledger.writer.set_prefect_api_url(API_URL)
        yield ledger


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str]) -> Call:  # noqa: ARG001 (the commands look there)
    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        code = run([*map(str, arguments)])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call
