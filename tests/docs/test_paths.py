"""Files that the pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pieces import PAGES, ROOT

PLACES = (ROOT, ROOT / "assetflow", ROOT / "tests")
FILE = re.compile(r"(?<![\w/.-])((?:\w+/)+\w+\.py)\b")


def files(page: Path) -> list[str]:
    """The files of this repository that the text of a page names; what stands in blocks is the reader's."""
    return FILE.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))


PAGES_WITH_FILES = [page for page in PAGES if files(page)]


@pytest.mark.parametrize("page", PAGES_WITH_FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    missing = [file for file in files(page) if not any((place / file).exists() for place in PLACES)]
    assert missing == []
