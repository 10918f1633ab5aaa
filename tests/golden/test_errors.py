"""The texts of errors: every one that the code raises with a text of its own, from the syntax trees."""

import ast
from pathlib import Path

from assetflow import errors
from assetflow.errors import AssetflowError
from tests.golden import agrees_as_text

ROOT = Path(__file__).parents[2] / "assetflow"


def test_the_texts_of_errors() -> None:
    classes, calls = classes_and_calls()
    kinds = {"AssetflowError"}
    while more := {name for name, above in classes.items() if above & kinds} - kinds:
        kinds |= more
    found = {line for call in calls if name_of(call.func) in kinds if (line := line_of(call))}
    assert len(found) > 400
    agrees_as_text("errors.txt", "\n".join(sorted(found)) + "\n")


def test_the_codes_of_errors() -> None:
    """A code follows from the name of its class, and programs read it: a class that is renamed changes the API."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AssetflowError)]
    assert len({kind.code for kind in kinds}) == len(kinds)
    agrees_as_text("error_codes.txt", "\n".join(sorted(kind.code for kind in kinds)) + "\n")


def classes_and_calls() -> tuple[dict[str, set[str]], list[ast.Call]]:
    """Each class with those that it is made from, and each call with a text or a fix."""
    classes: dict[str, set[str]] = {}
    calls: list[ast.Call] = []
    sources = [file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))]
    for source in (each for each in sources if "errors" in each or "AssetflowError" in each):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = {name_of(base) for base in node.bases}
            elif isinstance(node, ast.Call) and node.args and name_of(node.func)[:1].isupper():
                calls.append(node)
    return classes, calls


def line_of(call: ast.Call) -> str | None:
    """The class of an error, what happened, and what to do; `None` if neither is a literal text."""
    fixes = [each.value for each in call.keywords if each.arg == "fix"]
    parts = [text_of(each) for each in (*call.args[:1], *fixes)]
    return f"{name_of(call.func)}: {' | '.join(part or '{}' for part in parts)}" if any(parts) else None


def text_of(node: ast.expr) -> str | None:
    """The text of a literal, with {} for what is put into it; `None` if it is not a literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(side) for side in (node.left, node.right)]
        return "".join(part or "{}" for part in parts) if any(parts) else None
    return None


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
