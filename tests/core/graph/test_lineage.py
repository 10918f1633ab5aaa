"""The graph around a node: asked for step by step, and never farther than needed."""

from collections.abc import Collection

from assetflow.core.graph.lineage import DATA, SCHEDULING, Edge, EdgeKind, Node, loops_through, neighbourhood

ALL: frozenset[EdgeKind] = SCHEDULING | DATA


def asset(name: str) -> Node:
    return Node("asset", name)


def flow(name: str) -> Node:
    return Node("flow", name)


class Graph:
    """Edges, and what was asked for."""

    def __init__(self, *edges: Edge) -> None:
        self.edges = edges
        self.asked: list[set[Node]] = []

    def edges_of(self, nodes: Collection[Node]) -> list[Edge]:
        self.asked.append(set(nodes))
        return [edge for edge in self.edges if edge.source in nodes or edge.target in nodes]


def chain(length: int) -> Graph:
    """a0 starts f0, which makes a1, which starts f1, …"""
    edges: list[Edge] = []
    for at in range(length):
        edges.append(Edge(asset(f"a{at}"), flow(f"f{at}"), "schedules"))
        edges.append(Edge(flow(f"f{at}"), asset(f"a{at + 1}"), "produces"))
    return Graph(*edges)


def test_only_what_is_near_is_asked_for() -> None:
    graph = chain(50)
    found = neighbourhood(graph.edges_of, asset("a10"), 2, kinds=ALL, most=100)
    near = {"a10": 0, "f9": 1, "f10": 1, "a9": 2, "a11": 2}
    assert {node.value: distance for node, distance in found.distances.items()} == near
    assert found.more == {asset("a9"), asset("a11")}
    assert len(found.edges) == 4
    assert len(graph.asked) == 3


def test_a_loop_is_told_from_the_flow_back_to_itself() -> None:
    alias = Node("alias", "x")
    graph = Graph(
        *chain(2).edges,
        Edge(asset("a2"), alias, "links"),
        Edge(alias, flow("f0"), "schedules"),
        Edge(asset("a1"), flow("f0"), "reads"),
    )
    assert loops_through(graph.edges_of, "f0") == [("f0", "a1", "f1", "a2", "x", "f0")]
    assert loops_through(chain(3).edges_of, "f0") == []
