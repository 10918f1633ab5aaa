"""The Python of the pages: each piece that a reader may paste, as a module of its own."""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("deployments/**/*.md")]
Piece = Callable[..., Any]
# What stands "before" is another tool's.
PIECE = re.compile(r"^```python(?! \{\.before\})[^\n]*\n(.*?)^```", re.M | re.S)


def pieces(page: str) -> list[str]:
    """Return the pieces of a page in their order."""
    return PIECE.findall((ROOT / page).read_text(encoding="utf-8"))


def all_pieces() -> set[tuple[str, int]]:
    """Return page and number of every piece there is."""
    names = [str(page.relative_to(ROOT)) for page in PAGES]
    return {(name, number) for name in names for number in range(len(pieces(name)))}


@contextmanager
def imported(text: str, folder: Path, **given: object) -> Iterator[ModuleType]:
    """Write a piece to a file and import it for the block, with the names that its page takes for granted."""
    name = f"piece_{uuid4().hex}"
    place = folder / f"{name}.py"
    place.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(given)
    # Prefect looks for a flow's module by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]
