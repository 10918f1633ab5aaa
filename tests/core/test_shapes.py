"""Shapes: what a fact looks like in JSON."""

from __future__ import annotations

import json

from assetflow.core.explain.what_if import RunToStart, WhatIf
from assetflow.core.shapes import as_json, as_text


def test_a_lone_surrogate_leaves_as_it_came() -> None:
    fact = WhatIf((RunToStart("a\ud800b", None, 1),))
    assert json.loads(as_text(WhatIf, fact)) == as_json(fact)
    assert b"\\ud800" in as_text(WhatIf, fact)
