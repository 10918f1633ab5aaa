"""Names such as `assetflow.testing.harness` in the text of the pages lead somewhere."""

from __future__ import annotations

import re
from importlib import import_module

from assetflow.prefect_io import names
from tests.docs.pieces import PAGES, ROOT

NAME = re.compile(r"`@?(assetflow(?:\.\w+)+)(?:\([^`]*\))?`")
# Events, labels and tags in Prefect are called in the same way.
IN_PREFECT = {value for value in vars(names).values() if isinstance(value, str)} | {*names.FRESHNESS_EVENTS.values()}
FILES = {path.name for path in ROOT.glob("deployments/**/*.*")}


def is_there(name: str) -> bool:
    """Return True if a name is a module, something in one, something in Prefect, or a file of the examples."""
    if name in IN_PREFECT or name in FILES:
        return True
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def test_a_name_leads_somewhere() -> None:
    found = {(page.name, name) for page in PAGES for name in NAME.findall(page.read_text(encoding="utf-8"))}
    assert {(page, name) for page, name in found if not is_there(name)} == set()
