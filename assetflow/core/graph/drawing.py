"""Drawings of the graph: boxes with their places, of a neighbourhood or of the whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assetflow.core.graph.folding import Picture, folded, of_groups
from assetflow.core.graph.layout import positions
from assetflow.core.graph.lineage import Edge, Node
from assetflow.core.graph.parts import GraphPart, whole

MOST = 2_500
# A whole graph with more nodes is folded by group at first.
READABLE = 60
REMEMBERED = 4


@dataclass(frozen=True)
class Drawing:
    """A part of the graph as boxes, each with the place of its middle."""

    part: GraphPart
    picture: Picture
    places: Mapping[str, tuple[int, int]]


def draw(
    part: GraphPart,
    groups: Mapping[Node, str],
    *,
    focus: Node | None = None,
    opened: Collection[str] = (),
    hubs: bool = True,
) -> Drawing:
    """Return a drawing of a part of the graph; `folded` says what the parameters mean."""
    picture = folded(part, groups, focus=focus, opened=opened, hubs=hubs)
    return Drawing(part, picture, positions(picture.boxes, picture.links))


class WholeGraph:
    """All assets and flows. It draws the same picture only once.

    Parameters:
        groups: the group of each asset that has one, by URI.
    """

    def __init__(self, edges: Sequence[Edge], groups: Mapping[str, str]) -> None:
        self._edges = edges
        self._groups = groups
        self.draw = lru_cache(maxsize=REMEMBERED)(self._draw)

    def _draw(self, fold: bool | None, opened: tuple[str, ...], hubs: bool) -> Drawing:
        """Return a drawing.

        Parameters:
            fold: whether groups are folded; `None`: if there are more nodes than one can read.
        """
        part = whole(self._edges, (), MOST if fold is False else 10 * MOST)
        is_folded = len(part.levels) > READABLE if fold is None else fold
        return draw(part, of_groups(self._edges, self._groups) if is_folded else {}, opened=opened, hubs=hubs)
