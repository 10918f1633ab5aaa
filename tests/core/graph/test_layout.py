"""The picture of the graph: parts of it, folding, and where things stand."""

import random
from collections.abc import Collection, Iterable
from itertools import pairwise

from assetflow.core.graph.layout import BOX, place
from assetflow.core.graph.lineage import Edge, Node, around, folded, tree


def asset(name: str) -> Node:
    return Node("asset", f"s3://lake/{name}")


def flow(name: str) -> Node:
    return Node("flow", f"{name}/daily")


def edges(*texts: str) -> list[Edge]:
    """`a > f`: asset a starts f. `f < a`: f makes a. `a ~ f`: f reads a."""
    found: list[Edge] = []
    for text in texts:
        left, sign, right = text.split()
        if sign == "<":
            found.append(Edge(flow(left), asset(right), "produces"))
        else:
            found.append(Edge(asset(left), flow(right), "schedules" if sign == ">" else "reads"))
    return found


def edges_of(all_edges: Iterable[Edge]):
    kept = list(all_edges)

    def of(nodes: Collection[Node]) -> list[Edge]:
        return [edge for edge in kept if edge.source in nodes or edge.target in nodes]

    return of


CHAIN = edges("a > f", "f < b", "b > g", "g < c", "c > h", "h < d", "a ~ f", "x > f")


def test_levels_are_flows_and_go_one_way() -> None:
    part = around(edges_of(CHAIN), asset("b"), up=0, down=1, most=100)
    assert set(part.levels) == {asset("b"), flow("g"), asset("c")}
    assert asset("c") in part.more, "its consumer is not shown"
    up = around(edges_of(CHAIN), asset("b"), up=1, down=0, most=100)
    assert set(up.levels) == {asset("b"), flow("f"), asset("a"), asset("x")}
    assert up.levels[asset("a")] == -2
    three = around(edges_of(CHAIN), asset("a"), up=0, down=3, most=100)
    assert [node.value for node in three.levels if node.kind == "flow"] == ["f/daily", "g/daily", "h/daily"]


def test_a_tree_has_each_box_once_below_the_first_that_leads_to_it() -> None:
    following = {"a": ["c", "b"], "b": ["d"], "c": ["d", "a"]}
    found = list(tree(["a", "e"], following, lambda box: (ord(box), 0)))
    assert found == [("a", 0), ("b", 1), ("d", 2), ("c", 1), ("e", 0)]


def test_a_circle_ends() -> None:
    circle = edges("a > f", "f < a")
    assert set(around(edges_of(circle), asset("a"), up=9, down=9, most=100).levels) == {asset("a"), flow("f")}
    assert len(place(["a", "f", "g"], [("a", "f"), ("f", "g"), ("g", "a")], {}).boxes) == 3


def test_a_hub_folds_and_opens() -> None:
    hub = edges(*(f"hub > f{number}" for number in range(22)), "f3 < out")
    part = around(edges_of(hub), asset("hub"), up=0, down=1, most=100)
    picture = folded(part, {}, focus=asset("hub"))
    more = f"more:down:{asset('hub').as_json()}"
    assert len(picture.boxes[more].nodes) == 16, "five ends and the flow that leads on stay"
    assert (asset("hub").as_json(), more) in picture.links
    assert more not in folded(part, {}, focus=asset("hub"), opened=[more]).boxes


def drawn_links(boxes: int, of_each: int) -> list[tuple[str, str]]:
    chance = random.Random(5)
    return [
        (f"n{source}", f"n{target}")
        for source in range(boxes)
        for target in chance.sample(range(boxes), of_each)
        if source < target
    ]


def test_effects_stand_to_the_right_of_their_causes_and_nothing_overlaps() -> None:
    boxes, links = [f"n{number}" for number in range(300)], drawn_links(300, 2)
    found = place(boxes, links, {}).boxes
    again = place(list(reversed(boxes)), list(reversed(links)), {}).boxes
    assert found == again, "the same graph has the same positions"
    assert all(found[source][0] < found[target][0] for source, target in links)
    columns: dict[int, list[int]] = {}
    for x, y in found.values():
        columns.setdefault(x, []).append(y)
    for heights in columns.values():
        heights.sort()
        assert all(after - before > BOX[1] for before, after in pairwise(heights))
