"""`scripts/rest`: docs/rest.md is what the OpenAPI document says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "rest"))


def test_the_page_of_operations_is_that_of_the_document() -> None:
    document = json.loads(SCRIPT["DOCUMENT"].read_text(encoding="utf-8"))
    assert SCRIPT["rest_page"](document) == (ROOT / "docs" / "rest.md").read_text(encoding="utf-8"), (
        "the document says something else: write `.venv/bin/python scripts/rest > docs/rest.md`"
    )
