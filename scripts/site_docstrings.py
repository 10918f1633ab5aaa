"""Shows docstrings on the site as they are meant: examples as code, parameters that share a line one by one, and for an
object that has none, such as `asset`, that of its class."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Module, Object

# Markdown would take `>>>` for a quotation.
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)
_OBJECT = re.compile(r"\b(\w+)\(\)\)?$")
_TOGETHER = re.compile(r"^    ((?:\w+, )+\w+):(.*(?:\n {8}.*)*)$", re.M)


class SiteDocstrings(Extension):
    """Put each example of a docstring between fences, and each parameter on a line of its own."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one module, class, function or attribute."""
        if obj.is_attribute and not obj.docstring:
            obj.docstring = _of_its_class(obj)
        if obj.docstring and "```pycon" not in obj.docstring.value:
            fenced = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = _TOGETHER.sub(_apart, fenced)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Change the docstring of the package itself, for which griffe does not call `on_object`."""
        self.on_object(obj=pkg)


def _of_its_class(obj: Any) -> Docstring | None:
    """Return the docstring of the class of an object that its module makes, as `asset` is made."""
    made = _OBJECT.search(str(obj.value))
    of = obj.parent.members.get(made[1]) if made else None
    if of is None or of.is_alias or not of.is_class or not of.docstring:
        return None
    return Docstring(of.docstring.value, parent=obj)


def _apart(found: re.Match[str]) -> str:
    return "\n".join(f"    {name}:{found[2]}" for name in found[1].split(", "))
