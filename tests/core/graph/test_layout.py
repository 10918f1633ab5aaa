"""The picture of the graph: parts of it, folding, and where things stand."""

import random
import time
from collections.abc import Collection, Iterable
from itertools import pairwise

from assetflow.core.graph.layout import BOX, place
from assetflow.core.graph.lineage import Edge, Node, around, folded, tree, whole


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
    assert len(place(["a", "f", "g"], [("a", "f"), ("f", "g"), ("g", "a")], {}).boxes) == 3


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
    found = place("abcxyz", [("a", "b"), ("b", "c"), ("x", "y")], {}).boxes
    assert max(found[box][1] for box in "abc") + BOX[1] < min(found[box][1] for box in "xy")
    assert max(found[box][1] for box in "xy") + BOX[1] < found["z"][1]
    assert len({found[box][0] for box in "axz"}) == 1


def drawn_links(boxes: int, of_each: int) -> list[tuple[str, str]]:
    chance = random.Random(5)
    return [
        (f"n{source}", f"n{target}")
        for source in range(boxes)
        for target in chance.sample(range(boxes), of_each)
        if source < target
    ]


def is_within(box: tuple[int, int], y: int) -> bool:
    return abs(box[1] - y) < BOX[1] / 2


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


def test_no_line_runs_through_a_box() -> None:
    """Between two columns there is nothing but lines, so only what crosses a column counts."""
    boxes, links = [f"n{number}" for number in range(60)], [*drawn_links(60, 2), ("n40", "n1"), ("n7", "n7")]
    found = place(boxes, links, {})
    assert any(found.routes.values())
    for link, route in found.routes.items():
        for (x, y), (other, same) in zip(route[::2], route[1::2], strict=True):
            assert (abs(other - x), same) == (BOX[0], y), link
            crossed = [box for box in found.boxes.values() if min(x, other) < box[0] < max(x, other)]
            assert crossed
            assert not any(is_within(box, y) for box in crossed), link


def test_the_lines_of_a_hub_share_their_way() -> None:
    ends = [f"end{number}" for number in range(5)]
    links = [("hub", "a"), ("a", "b"), *(("b", end) for end in ends), *(("hub", end) for end in ends)]
    routes = place(["hub", "a", "b", *ends], links, {}).routes
    assert len({tuple(routes["hub", end]) for end in ends}) == 1


def test_a_frame_has_its_members_in_it_and_nothing_else() -> None:
    boxes, links = [f"n{number}" for number in range(40)], drawn_links(40, 2)
    groups = {box: f"g{number % 3}" for number, box in enumerate(boxes) if number % 4}
    found = place(boxes, links, groups)
    assert {*found.boxes} == {*boxes}
    for box, (x, y) in found.boxes.items():
        framed = [
            name
            for name, frame in found.frames.items()
            if frame.corner[0] < x < frame.corner[0] + frame.size[0]
            and frame.corner[1] < y < frame.corner[1] + frame.size[1]
        ]
        assert framed == ([f"group:{groups[box]}"] if box in groups else []), box
    assert {box for frame in found.frames.values() for box in frame.members} == {*groups}


def test_a_line_out_of_a_frame_passes_the_members_beside_it() -> None:
    links = [("a", "b"), ("b", "c"), ("a", "out"), ("in", "c")]
    found = place(["a", "b", "c", "in", "out"], links, dict.fromkeys("abc", "g"))
    frame = found.frames["group:g"]
    for line in (("a", "out"), ("in", "c")):
        inside = [at for at in found.routes[line] if frame.corner[0] < at[0] < frame.corner[0] + frame.size[0]]
        assert len(inside) >= 4, "it crosses two columns"
        assert not any(is_within(found.boxes[box], y) for box in "bc" if line[1] != box for _, y in inside[:4])


def test_two_thousand_boxes_are_placed_in_a_fraction_of_a_second() -> None:
    boxes = [f"n{number}" for number in range(2_000)]
    links = [(boxes[number // 3], boxes[number]) for number in range(3, 2_000)]
    began = time.process_time()
    place(boxes, links, {box: f"g{number % 9}" for number, box in enumerate(boxes)})
    assert time.process_time() - began < 1
