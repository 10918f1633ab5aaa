"""The names by which people call the assets of a state (contract 1.2)."""

from __future__ import annotations

from collections.abc import Callable

from assetflow.core.rules.state import State


def names_in(state: State) -> Callable[[str], str]:
    """Return the function that returns the readable name of a URI: the first of its names, or else the URI."""
    return lambda uri: min((name for name in state.names.names_of(uri) if name != uri), default=uri)
