"""The public names: the pages import them from where they are, and most projects need few of them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.public import names

ROOT = Path(__file__).parents[2]
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
