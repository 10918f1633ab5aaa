"""The public names, as the modules list them, and the examples in their docstrings."""

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from assetflow.errors import AssetflowError

MODULES = (
    "assetflow",
    "assetflow.checks",
    "assetflow.partitions",
    "assetflow.timetables",
    "assetflow.types",
    "assetflow.watchers",
    "assetflow.listeners",
    "assetflow.testing",
    "assetflow.errors",
)


def names(module: str) -> list[str]:
    """Return the public names of a module: those of its `__all__`; of the errors, all."""
    found = import_module(module)
    if module == "assetflow.errors":
        return [name for name, value in vars(found).items() if is_error(value)]
    return [name for name in found.__all__ if name != "__version__"]


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, AssetflowError | UserWarning)


def public() -> dict[str, Any]:
    """Return each public module and each public object, by its full name."""
    found: dict[str, Any] = {module: import_module(module) for module in MODULES}
    for module in MODULES:
        found |= {f"{module}.{name}": getattr(found[module], name) for name in names(module)}
    return found


def documented(value: Any) -> Any:
    """Return what has the docstring: the class, for objects such as `asset` and `inlet_events`."""
    return value if isinstance(value, type | ModuleType) or inspect.isroutine(value) else type(value)


def members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Return a public object and its public methods and properties, those it inherits from Prefect left out."""
    value = documented(value)
    yield name, value
    if isinstance(value, type):
        for member, found in vars(value).items():
            if not member.startswith("_") and (inspect.isroutine(found) or isinstance(found, property)):
                yield f"{name}.{member}", found.__func__ if isinstance(found, classmethod | staticmethod) else found


def examples(name: str, value: Any) -> doctest.DocTest | None:
    """Return the examples in the docstring of an object, one after the other; `None` if it has none."""
    text = inspect.getdoc(value) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    return test if test.examples else None


def run(test: doctest.DocTest, **given: object) -> dict[str, Any]:
    """Run examples and return the names that they made.

    Raises:
        AssertionError: an example fails, or its output is another one. It shows what doctest shows.
    """
    test.globs.update(given)
    failed = failures(test)
    assert not failed, failed
    return test.globs


def failures(test: doctest.DocTest) -> str:
    """Run examples and return what doctest shows of those that fail; an empty text if none does."""
    shown: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=shown.append, clear_globs=False)
    return "".join(shown)
