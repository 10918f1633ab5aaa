"""docs/reference.md lists each public name once, with the first sentence of its docstring.

The tables are written anew by `WRITE_GOLDEN=1 pytest tests/docs/test_reference.py`.
"""

from __future__ import annotations

import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.public import MODULES, documented, names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
CHAPTERS = dict(re.findall(r"^## `([\w.]+)`[^\n]*\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S))
TABLE = re.compile(r"^\| name \| what it is \|\n.*?(?=\n\n|\Z)", re.M | re.S)


def first_paragraph(module: str, name: str) -> str:
    text = inspect.getdoc(documented(getattr(import_module(module), name))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def table(module: str) -> str:
    """Return the table of a module as it has to stand in the page."""
    rows = [f"| `{name}` | {first_paragraph(module, name).replace('|', chr(92) + '|')} |" for name in names(module)]
    if module == "assetflow":
        rows.append("| `__version__` | The version of assetflow that is installed, a text. |")
    return "\n".join(("| name | what it is |", "| --- | --- |", *rows))


def test_each_public_module_has_a_chapter() -> None:
    assert list(CHAPTERS) == list(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_the_page_lists_what_the_module_exports(module: str) -> None:
    found = TABLE.search(CHAPTERS[module])
    assert found is not None
    if "WRITE_GOLDEN" in os.environ:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(found[0], table(module)), encoding="utf-8")
        return
    assert found[0].splitlines() == table(module).splitlines()


PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("deployments/**/*.md")]
CODE = re.compile(r"^```python.*?^```", re.M | re.S)
IMPORT = re.compile(r"^ *(from assetflow[\w.]* import (?:[\w, ]+|\([^)]+\)))", re.M)


def imports(page: Path) -> list[str]:
    return [line for block in CODE.findall(page.read_text(encoding="utf-8")) for line in IMPORT.findall(block)]


@pytest.mark.parametrize("page", [page for page in PAGES if imports(page)], ids=lambda page: page.stem)
def test_pages_import_from_where_a_name_is(page: Path) -> None:
    """An old place would be a DeprecationWarning, which is an error here."""
    for line in imports(page):
        exec(line, {})


def test_most_projects_need_few_names() -> None:
    """What nine of ten users type stands in the root; what grows stands in the other modules."""
    assert len(names("assetflow")) <= 39
