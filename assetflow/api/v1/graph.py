"""The picture of assets and flows: names, states and places, around a node or as a whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Text, TheReader
from assetflow.operations.graph import Graph, Wanted, graph_of
from assetflow.operations.lookup import find_node

router = APIRouter(tags=["assets"], route_class=EtagRoute)

Levels = Annotated[int, Query(ge=0, le=50, description="How many levels; a level is one flow.")]


@router.get("/graph", responses=answers(404))
def get_graph(
    reader: TheReader,
    focus: Annotated[
        Text, Query(description="A node by its id, an asset by URI or name, or a flow; empty for the whole graph.")
    ] = "",
    up: Levels = 1,
    down: Levels = 3,
    fold: Annotated[bool | None, Query(description="Fold groups; by default only those of a large whole.")] = None,
    opened: Annotated[list[Text], Query(description="The ids of boxes that are not folded.")] = [],  # noqa: B006
) -> Graph:
    """Return the graph with a place for each node: the way up and down from one, or the whole.

    There is one edge for two nodes, with the kinds of all relations between them. The ends of a hub are folded into one
    node, and so are groups; name their ids in `opened` to see what is in them.
    """
    start = find_node(reader, focus) if focus else None
    return graph_of(reader, Wanted(start, up, down, fold, tuple(opened)))
