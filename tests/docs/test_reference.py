"""docs/reference.md lists each public name once, with the first sentence of its docstring; errors with their codes.

The tables are written anew by `WRITE_GOLDEN=1 pytest tests/docs/test_reference.py`.
"""

from __future__ import annotations

import inspect
import os
import re
from importlib import import_module
from pathlib import Path

from tests.docs.public import MODULES, documented, names

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
CHAPTERS = dict(re.findall(r"^## `([\w.]+)`[^\n]*\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S))
TABLE = re.compile(r"^\| name \| (?:what it is|its code) \|\n.*?(?=\n\n|\Z)", re.M | re.S)


def first_paragraph(module: str, name: str) -> str:
    text = inspect.getdoc(documented(getattr(import_module(module), name))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def in_a_cell(text: str) -> str:
    """Write code with a bar so that GitHub and the site both show it within a cell."""
    return re.sub(r"`([^`|]*)\|([^`|]*)`", r"<code>\1&#124;\2</code>", text)


def table(module: str) -> str:
    """Return the table of a module as it has to stand in the page."""
    if module == "assetflow.errors":
        return "\n".join(("| name | its code |", "| --- | --- |", *map(with_its_code, names(module))))
    rows = [f"| `{name}` | {in_a_cell(first_paragraph(module, name))} |" for name in names(module)]
    if module == "assetflow":
        rows.append("| `__version__` | The version of assetflow that is installed, a text. |")
    return "\n".join(("| name | what it is |", "| --- | --- |", *rows))


def with_its_code(name: str) -> str:
    """Return the row of an error; docs/log.md says what each code means."""
    code = getattr(getattr(import_module("assetflow.errors"), name), "code", "")
    return f"| `{name}` | `{code}` |" if code else f"| `{name}` | |"


def test_each_public_module_has_a_chapter() -> None:
    assert list(CHAPTERS) == list(MODULES)


def test_the_page_lists_what_the_modules_export() -> None:
    found = [match[0] for text in CHAPTERS.values() if (match := TABLE.search(text))]
    expected = [table(module) for module in MODULES]
    if "WRITE_GOLDEN" in os.environ:
        page = PAGE.read_text(encoding="utf-8")
        for old, new in zip(found, expected, strict=True):
            page = page.replace(old, new)
        PAGE.write_text(page, encoding="utf-8")
        return
    assert "\n\n".join(found).splitlines() == "\n\n".join(expected).splitlines()


PAGES = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("deployments/**/*.md")]
CODE = re.compile(r"^```python.*?^```", re.M | re.S)
IMPORT = re.compile(r"^ *(from assetflow[\w.]* import (?:[\w, ]+|\([^)]+\)))", re.M)


def imports(page: Path) -> list[str]:
    return [line for block in CODE.findall(page.read_text(encoding="utf-8")) for line in IMPORT.findall(block)]


def test_pages_import_from_where_a_name_is() -> None:
    assert [(page.name, line) for page in PAGES for line in imports(page) if not works(line)] == []


def works(line: str) -> bool:
    """Return True if a line can be imported; an old place would be a DeprecationWarning, which is an error here."""
    try:
        exec(line, {})
    except (ImportError, DeprecationWarning):
        return False
    return True


def test_most_projects_need_few_names() -> None:
    """What nine of ten users type stands in the root; what grows stands in the other modules."""
    assert len(names("assetflow")) <= 39
