"""The picture of the graph: parts of it, folding, and where things stand."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable
from itertools import pairwise

from assetflow.core.graph.layout import COLUMN, ROW, positions
from assetflow.core.graph.lineage import Edge, Node
from assetflow.core.graph.parts import around, folded, tree, whole


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


def test_the_way_goes_on_from_an_opened_node() -> None:
    part = around(edges_of(CHAIN), asset("a"), up=0, down=1, most=100)
    assert part.more == {asset("b")}
    opened = around(edges_of(CHAIN), asset("a"), up=0, down=1, most=100, opened=[asset("b"), asset("c"), asset("far")])
    assert set(opened.levels) - set(part.levels) == {flow("g"), asset("c"), flow("h"), asset("d")}
    assert opened.levels[asset("d")] == 6
    upwards = around(edges_of(CHAIN), asset("d"), up=1, down=0, most=100, opened=[asset("c")])
    assert upwards.levels[asset("b")] == -4


def test_a_tree_has_each_box_once_below_the_first_that_leads_to_it() -> None:
    following = {"a": ["c", "b"], "b": ["d"], "c": ["d", "a"]}
    found = list(tree(["a", "e"], following, lambda box: (ord(box), 0)))
    assert found == [("a", 0), ("b", 1), ("d", 2), ("c", 1), ("e", 0)]


def test_one_relation_for_a_pair_of_nodes() -> None:
    part = around(edges_of(CHAIN), asset("a"), up=0, down=1, most=100)
    assert part.relations[asset("a"), flow("f")] == {"schedules", "reads"}
    assert len(part.relations) == 2


def test_an_alias_is_on_the_way() -> None:
    alias = Node("alias", "any")
    through = [Edge(asset("a"), alias, "links"), Edge(alias, flow("f"), "schedules"), *edges("f < b")]
    part = around(edges_of(through), asset("a"), up=0, down=1, most=100)
    assert set(part.levels) == {asset("a"), alias, flow("f"), asset("b")}


def test_a_circle_ends() -> None:
    circle = edges("a > f", "f < a")
    assert set(around(edges_of(circle), asset("a"), up=9, down=9, most=100).levels) == {asset("a"), flow("f")}
    places = positions([node.as_json() for node in (asset("a"), flow("f"))], [("a", "f"), ("f", "a")][:0])
    assert len(places) == 2
    assert len(positions(["a", "f", "g"], [("a", "f"), ("f", "g"), ("g", "a")])) == 3


def test_too_many_nodes_keep_the_nearest() -> None:
    hub = edges(*(f"hub > f{number}" for number in range(50)))
    part = around(edges_of(hub), asset("hub"), up=1, down=1, most=10)
    assert (len(part.levels), part.truncated) == (10, True)
    assert whole(hub, [], 10).truncated


def test_a_hub_folds_and_opens() -> None:
    hub = edges(*(f"hub > f{number}" for number in range(22)), "f3 < out")
    part = around(edges_of(hub), asset("hub"), up=0, down=1, most=100)
    picture = folded(part, {}, focus=asset("hub"))
    more = f"more:down:{asset('hub').as_json()}"
    assert len(picture.boxes[more].nodes) == 16, "five ends and the flow that leads on stay"
    assert (asset("hub").as_json(), more) in picture.links
    assert more not in folded(part, {}, focus=asset("hub"), opened=[more]).boxes


def test_groups_fold_into_one_box_with_one_link() -> None:
    part = whole(CHAIN, [], 100)
    groups = {asset("a"): "raw", asset("x"): "raw", flow("f"): "staging", asset("b"): "staging"}
    picture = folded(part, groups)
    assert set(picture.boxes["group:raw"].nodes) == {asset("a"), asset("x")}
    assert picture.links["group:raw", "group:staging"] == {"schedules", "reads"}
    assert asset("a").as_json() in folded(part, groups, opened=["group:raw"]).boxes


def test_parts_without_a_link_between_them_stand_below_each_other() -> None:
    found = positions("abcxyz", [("a", "b"), ("b", "c"), ("x", "y")])
    assert max(found[box][1] for box in "abc") + ROW <= min(found[box][1] for box in "xy")
    assert max(found[box][1] for box in "xy") + ROW <= found["z"][1]
    assert {found[box][0] for box in "axz"} == {0}


def test_effects_stand_to_the_right_of_their_causes_and_nothing_overlaps() -> None:
    chance = random.Random(5)
    boxes = [f"n{number}" for number in range(300)]
    links = [
        (boxes[source], boxes[target])
        for source in range(300)
        for target in chance.sample(range(300), 2)
        if source < target
    ]
    found = positions(boxes, links)
    assert found == positions(list(reversed(boxes)), list(reversed(links))), "the same graph has the same positions"
    assert all(found[source][0] < found[target][0] for source, target in links)
    columns: dict[int, list[int]] = {}
    for x, y in found.values():
        assert x % COLUMN == 0
        columns.setdefault(x, []).append(y)
    for heights in columns.values():
        heights.sort()
        assert all(after - before >= ROW - 1 for before, after in pairwise(heights))


def test_two_thousand_boxes_are_placed_in_a_fraction_of_a_second() -> None:
    boxes = [f"n{number}" for number in range(2_000)]
    links = [(boxes[number // 3], boxes[number]) for number in range(3, 2_000)]
    began = time.process_time()
    positions(boxes, links)
    assert time.process_time() - began < 0.5
