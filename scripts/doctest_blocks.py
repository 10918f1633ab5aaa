"""Shows the examples of docstrings as code on the site: Markdown would take `>>>` for a quotation."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)


class DoctestBlocks(Extension):
    """Put each example of a docstring between fences."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
