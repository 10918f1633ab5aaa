"""Command line, API and pages write through operations, and share nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import assetflow

PACKAGE = Path(assetflow.__file__).parent
EDGES = ("api", "cli", "web")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for edge in EDGES:
        for place in sorted((PACKAGE / edge).rglob("*.py")):
            name = ".".join(place.relative_to(PACKAGE.parent).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(place.read_text(encoding="utf-8"))


def test_nothing_but_operations_writes_for_command_line_api_and_pages() -> None:
    """A session that ends is no operation: it belongs to the login alone."""
    writing = {
        name
        for name, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr == "writer" and "ledger" in ast.unparse(node.value)
    }
    assert writing == {"assetflow.web.login"}
