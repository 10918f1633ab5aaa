"""The file that tells where a ready evaluator is, is private."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

from assetflow.evaluator.process.evaluator import Evaluator
from assetflow.evaluator.process.service import ready_marker


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
