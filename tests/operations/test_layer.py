"""Command line, API and pages write through operations, and share nothing else."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import assetflow

PACKAGE = Path(assetflow.__file__).parent
EDGES = ("api", "cli", "web")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for edge in EDGES:
        for place in sorted((PACKAGE / edge).rglob("*.py")):
            name = ".".join(place.relative_to(PACKAGE.parent).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(place.read_text(encoding="utf-8"))


def makes_routes(module: ast.Module) -> bool:
    decorators = (each for node in ast.walk(module) for each in getattr(node, "decorator_list", ()))
    calls = (each.func for each in decorators if isinstance(each, ast.Call))
    verbs = {"get", "post", "put", "patch", "delete"}
    return any(isinstance(each, ast.Attribute) and each.attr in verbs for each in calls)


def test_the_import_contract_names_every_module_with_routes() -> None:
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        each for each in settings["tool"]["importlinter"]["contracts"] if each["name"].startswith("No route uses")
    )
    # `metrics` has one route that nobody shares; the site itself has the redirect of its root.
    found = {name for name, module in modules() if makes_routes(module)} - {
        "assetflow.api.metrics",
        "assetflow.web.site",
    }
    named = {module for module, _ in modules() if any(fnmatch(module, each) for each in contract["modules"])}
    assert named == found


def test_nothing_but_operations_writes_for_command_line_api_and_pages() -> None:
    """A session that ends is no operation: it belongs to the login alone."""
    writing = {
        name
        for name, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr == "writer" and "ledger" in ast.unparse(node.value)
    }
    assert writing == {"assetflow.web.login"}
