"""An evaluator starts, follows what others commit, and settles while Prefect is busy for a moment."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest

from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.process.evaluator import Evaluator, Options, open_evaluator
from assetflow.evaluator.process.service import ready_marker
from tests.environment.prefect_settings import prefect_at


async def test_the_wait_for_prefect_has_a_limit(tmp_path: Path) -> None:
    with prefect_at("http://127.0.0.1:9/api"), pytest.raises(PrefectUnreachable, match=r"did not answer in 0\.5 s"):
        async with open_evaluator(Options(patience=0.5), place=tmp_path / "ledger.db"):
            pass


def test_the_marker_and_its_folder_are_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        evaluator = SimpleNamespace(api_url="http://127.0.0.1:4200/api", ledger_id=uuid4())
        with ready_marker(home, cast(Evaluator, evaluator)) as marker:
            assert marker.stat().st_mode & 0o777 == 0o600
            assert json.loads(marker.read_text())["pid"] == os.getpid()
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
