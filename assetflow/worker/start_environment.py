"""The variables that a process reads when it starts: a fork cannot take another value of them."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "MKL_", "ARROW_", "LC_")
_NAMES = frozenset({"LANG", "SSL_CERT_FILE"})


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that counts only when a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES) or name in _NAMES}


def differs(environment: Mapping[str, str], own: Mapping[str, str] = os.environ) -> bool:
    """Return True if a run with this environment needs a process of its own."""
    return read_at_start(environment) != read_at_start(own)
