"""`scripts/rest`: the site's page of operations has those of the OpenAPI document."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "rest"))


def test_the_page_has_every_operation_of_the_document() -> None:
    document = json.loads(SCRIPT["DOCUMENT"].read_text(encoding="utf-8"))
    operations = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    rows = re.findall(r"^\| `([A-Z]+ [^`]+)` \| [^|]+ \| [^|]*\|$", SCRIPT["rest_page"](document), re.M)
    assert sorted(rows) == sorted(operations)
