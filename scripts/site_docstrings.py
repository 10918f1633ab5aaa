"""Shows docstrings on the site as they are meant: examples as code, and parameters that share a line one by one."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# Markdown would take `>>>` for a quotation.
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)
_TOGETHER = re.compile(r"^    ((?:\w+, )+\w+):(.*(?:\n {8}.*)*)$", re.M)


class SiteDocstrings(Extension):
    """Put each example of a docstring between fences, and each parameter on a line of its own."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one module, class, function or attribute."""
        if obj.docstring:
            fenced = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = _TOGETHER.sub(_apart, fenced)


def _apart(found: re.Match[str]) -> str:
    return "\n".join(f"    {name}:{found[2]}" for name in found[1].split(", "))
