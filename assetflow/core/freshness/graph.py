"""The data graph: which deployed flow reads what another one makes (contract chapter 8, Words)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from assetflow.core.grouping import way_to
from assetflow.core.partitions import EveryTargetMapper, PartitionMapper, TimeWindowMapper
from assetflow.core.time.timetables import CronPartitionTimetable, PartitionedAtRuntime
from assetflow.core.values.assets import Asset, AssetRef
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import Keeping
from assetflow.core.values.schedules import Partitioning, Schedule

Resolve = Callable[[Token], str | None]
TokensOf = Callable[[str], frozenset[Token]]

K = TypeVar("K", bound=Hashable)
N = TypeVar("N")
V = TypeVar("V")

_BY_KEY = Partitioning()

# A flow, and whether there is an Eager or Lazy one on the way to it.
_Step = tuple[int, bool]


@dataclass(frozen=True, eq=False)
class FlowNode:
    """A deployed flow in the data graph, with its references resolved.

    Attributes:
        inputs: what it reads, sorted.
        outputs: what it makes, each with what it depends on.
        code_versions: each output with its code version.
        starts: the inputs whose changes may start it (8.4).
        mappers: each input with its mapper; inputs that are read whole have none.
        policies: the freshness policies that it declares.
    """

    consumer: Consumer
    inputs: tuple[str, ...]
    outputs: Mapping[str, frozenset[str]]
    code_versions: Mapping[str, str | None]
    starts: frozenset[str]
    mappers: Mapping[str, PartitionMapper]
    policies: Mapping[str, FreshnessPolicy]

    @property
    def id(self) -> int:
        return self.consumer.id

    @property
    def keeping(self) -> Keeping | None:
        return self.consumer.schedule.keeping

    @property
    def is_eager(self) -> bool:
        return self.keeping is not None and self.keeping.is_eager

    @property
    def is_lazy(self) -> bool:
        return self.keeping is not None and not self.keeping.is_eager

    @cached_property
    def is_partitioned(self) -> bool:
        return is_partitioned(self.consumer.schedule)

    @property
    def is_idle(self) -> bool:
        """True if it is paused, or held back by the deployment's own pause (3.4)."""
        return self.consumer.paused or self.consumer.held

    def is_read_by_key(self, uri: str) -> bool:
        """Return True if the items of an input belong to single targets, so that they can start runs (8.4)."""
        return self.is_partitioned and not isinstance(self.mappers.get(uri), EveryTargetMapper)


@dataclass
class _Derived:
    """Facts that follow from the flows of a graph, computed when they are first needed."""

    order: Mapping[int, int] | None = None
    compared: frozenset[str] | None = None


class DataGraph:
    """The flows that read or make assets, by input and by output."""

    def __init__(
        self,
        flows: Iterable[Consumer],
        resolve: Resolve,
        tokens_of: TokensOf,
        earlier_inputs: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._resolve = resolve
        self._tokens_of = tokens_of
        self._nodes: dict[int, FlowNode] = {}
        self._makers: dict[str, dict[int, None]] = {}
        self._readers: dict[str, dict[int, None]] = {}
        self._deployments: dict[UUID, int] = {}
        self._policies: dict[str, dict[int, None]] = {}
        self._by_name: dict[str, dict[int, None]] = {}
        self._keepers: dict[int, None] = {}
        # Assets, each with what its updates were made from and its makers do not read; and the other way round.
        self._earlier_inputs: dict[str, dict[str, None]] = {}
        self._earlier_outputs: dict[str, dict[str, None]] = {}
        self._derived = _Derived()
        self.fill(flows)
        for uri, each in earlier_inputs:
            self._add_earlier_input(uri, each)

    def copy(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        """Return a graph of the same flows, which may change without this one."""
        copied = DataGraph((), resolve, tokens_of)
        copied._nodes = self._nodes.copy()
        copied._deployments = self._deployments.copy()
        copied._makers = _copied(self._makers)
        copied._readers = _copied(self._readers)
        copied._policies = _copied(self._policies)
        copied._by_name = _copied(self._by_name)
        copied._keepers = self._keepers.copy()
        copied._earlier_inputs = _copied(self._earlier_inputs)
        copied._earlier_outputs = _copied(self._earlier_outputs)
        copied._derived = self._derived
        return copied

    def fill(self, flows: Iterable[Consumer]) -> None:
        """Add flows."""
        for consumer in flows:
            self.put(consumer)

    def put(self, consumer: Consumer) -> FlowNode | None:
        """Add a flow, or replace it; one that neither reads nor makes anything leaves the graph."""
        self.remove(consumer.id)
        node = self.node_of(consumer)
        if not (node.inputs or node.outputs or consumer.schedule.keeping):
            return None
        self._nodes[consumer.id] = node
        self._deployments[consumer.deployment_id] = consumer.id
        if node.keeping is not None:
            self._keepers[node.id] = None
        for index, values in self._indexes(node):
            for value in values:
                index.setdefault(value, {})[node.id] = None
        return node

    def remove(self, number: int) -> None:
        """Take a flow out of the graph."""
        self._derived = _Derived()
        node = self._nodes.pop(number, None)
        self._keepers.pop(number, None)
        if node is not None:
            self._deployments.pop(node.consumer.deployment_id, None)
            for index, values in self._indexes(node):
                for value in values:
                    index[value].pop(number, None)

    def _indexes(self, node: FlowNode) -> Iterator[tuple[dict[str, dict[int, None]], Iterable[str]]]:
        """Yield the indexes, each with the values under which a flow is found."""
        yield self._makers, node.outputs
        yield self._readers, node.inputs
        yield self._policies, node.policies
        yield self._by_name, {token.value for token in node.consumer.data_tokens if token.kind == "name"}

    def renamed(self, name: str) -> list[FlowNode]:
        """Resolve references to a name again, because its asset became known; return the flows as they were."""
        concerned = [self._nodes[number] for number in self._by_name.get(name, ())]
        self.fill(node.consumer for node in concerned)
        return concerned

    def find(self, number: int) -> FlowNode | None:
        """Return a flow; `None` if it neither reads nor makes anything."""
        return self._nodes.get(number)

    def of_deployment(self, deployment_id: UUID) -> FlowNode | None:
        """Return the flow of a deployment."""
        number = self._deployments.get(deployment_id)
        return None if number is None else self._nodes.get(number)

    def all(self) -> Collection[FlowNode]:
        """Return all flows."""
        return self._nodes.values()

    @property
    def has_keepers(self) -> bool:
        """True if a flow keeps its outputs up to date."""
        return bool(self._keepers)

    @property
    def has_policies(self) -> bool:
        """True if a flow declares a freshness policy."""
        return any(self._policies.values())

    def declares_any(self, uris: Iterable[str]) -> bool:
        """Return True if a flow declares a freshness policy of one of these assets."""
        return any(self._policies.get(uri) for uri in uris)

    def compared(self) -> frozenset[str]:
        """Return what Eager and Lazy flows read or make, what has a policy, and all that these are made from."""
        derived = self._derived
        if derived.compared is None:
            derived.compared = self._find_compared()
        return derived.compared

    def _find_compared(self) -> frozenset[str]:
        declared = [uri for uri, declaring in self._policies.items() if declaring]
        first = [*self._keepers, *(number for uri in declared for number in self._makers.get(uri, ()))]
        nodes = [self._nodes[number] for number in reached(first, self._all_makers_ever)]
        return frozenset(uri for node in nodes for uri in (*node.outputs, *self._inputs_ever(node))).union(declared)

    def policy(self, uri: str) -> FreshnessPolicy | None:
        """Return the policy of an asset: the maker's declaration, or else that of the newest deployed reader (8.11)."""
        declared = self._policies.get(uri)
        if not declared:
            return None
        maker = self.maker(uri)
        makers = [*([] if maker is None else [maker]), *self.makers(uri)]
        declaring = [node.id for node in makers if node.id in declared] or [*reversed(declared)]
        return self._nodes[declaring[0]].policies[uri]

    def makers(self, uri: str) -> list[FlowNode]:
        """Return the makers of an asset, by name; an empty list for a source."""
        found = [self._nodes[number] for number in self._makers.get(uri, ())]
        return found if len(found) < 2 else sorted(found, key=_name)

    def maker(self, uri: str) -> FlowNode | None:
        """Return the maker whose declaration counts: an Eager or Lazy one, or else the first by name."""
        makers = self.makers(uri)
        return next((node for node in makers if node.keeping is not None), makers[0] if makers else None)

    def keepers(self, uri: str) -> list[FlowNode]:
        """Return the Eager and Lazy makers of an asset."""
        return [node for node in self.makers(uri) if node.keeping is not None]

    def readers(self, uri: str) -> list[FlowNode]:
        """Return the flows that read an asset."""
        return [self._nodes[number] for number in self._readers.get(uri, ())]

    def earlier_outputs(self, uri: str) -> Collection[str]:
        """Return the assets that were made from an asset which their makers do not read any more."""
        return self._earlier_outputs.get(uri, ())

    def add_earlier_inputs(self, uri: str, inputs: Iterable[str]) -> list[str]:
        """Remember what an asset was made from; return what of that its makers do not read, and was not known."""
        depends = {each for number in self._makers.get(uri, ()) for each in self._nodes[number].outputs[uri]}
        new = [each for each in inputs if each not in depends and each not in self._earlier_inputs.get(uri, ())]
        for each in new:
            self._add_earlier_input(uri, each)
        return new

    def _add_earlier_input(self, uri: str, each: str) -> None:
        self._derived = _Derived()
        self._earlier_inputs.setdefault(uri, {})[each] = None
        self._earlier_outputs.setdefault(each, {})[uri] = None

    def readers_ever(self, uri: str) -> Iterator[int]:
        """Yield the flows that read an asset, and those of which an output was made from it before."""
        yield from self._readers.get(uri, ())
        for output in self.earlier_outputs(uri):
            yield from self._makers.get(output, ())

    def dated_by(self, numbers: Iterable[int]) -> Collection[int]:
        """Return flows, and all whose data is as old as theirs: they read what these make, or did before (8.12)."""
        return reached(numbers, lambda number: self._of_outputs(number, self.readers_ever))

    def below(self, numbers: Iterable[int]) -> Collection[int]:
        """Return flows, and all that read what they make, directly or through others."""
        return reached(numbers, self._all_readers)

    def above(self, number: int) -> Collection[int]:
        """Return a flow, and the Eager and Lazy makers of what it reads, directly or through others."""
        return reached([number], lambda each: (maker for maker in self._all_makers(each) if maker in self._keepers))

    def with_inputs(self, uris: Iterable[str]) -> Collection[str]:
        """Return assets, and all that they are made from, directly or through others."""
        return reached(uris, lambda uri: () if (maker := self.maker(uri)) is None else maker.inputs)

    def _all_readers(self, number: int) -> Iterator[int]:
        return self._of_outputs(number, lambda uri: self._readers.get(uri, ()))

    def _of_outputs(self, number: int, readers: Callable[[str], Iterable[int]]) -> Iterator[int]:
        node = self._nodes.get(number)
        return (each for uri in (() if node is None else node.outputs) for each in readers(uri))

    def _all_makers(self, number: int) -> Iterator[int]:
        node = self._nodes.get(number)
        return (maker.id for uri in (() if node is None else node.inputs) for maker in self.makers(uri))

    def _all_makers_ever(self, number: int) -> Iterator[int]:
        return (maker for uri in self._inputs_ever(self._nodes[number]) for maker in self._makers.get(uri, ()))

    def _inputs_ever(self, node: FlowNode) -> Iterator[str]:
        yield from node.inputs
        for uri in node.outputs:
            yield from self._earlier_inputs.get(uri, ())

    def parents_first(self, numbers: Iterable[int]) -> list[FlowNode]:
        """Return flows in the order in which a pass looks at them: by name, each after the makers of its inputs."""
        known = [number for number in numbers if number in self._nodes]
        if len(known) > 1:
            known.sort(key=self._order().__getitem__)
        return [self._nodes[number] for number in known]

    def _order(self) -> Mapping[int, int]:
        """Return the place of each flow among all in order. Finding it takes the longer the more flows there are."""
        derived = self._derived
        if derived.order is None:
            derived.order = {number: place for place, number in enumerate(self._all_in_order())}
        return derived.order

    def way_back(self, node: FlowNode) -> list[FlowNode] | None:
        """Return a way from a flow through what it makes back to itself, on which there is an Eager or Lazy flow.

        The flow counts as it is given, whether it is in the graph already or not. Contract 8.10.
        """
        start: _Step = (node.id, node.keeping is not None)
        came_from: dict[_Step, _Step] = {}
        nodes, waiting = {node.id: node}, deque([start])
        while waiting:
            step = waiting.popleft()
            for reader in self._readers_of(nodes[step[0]], node):
                following = (reader.id, step[1] or reader.keeping is not None)
                if reader.id == node.id:
                    if following[1] and not (step[0] == node.id and _reads_earlier_periods(node)):
                        return [*(nodes[number] for number, _ in way_to(step, start, came_from)), node]
                elif following not in came_from:
                    nodes[reader.id] = reader
                    came_from[following] = step
                    waiting.append(following)
        return None

    def _readers_of(self, current: FlowNode, start: FlowNode) -> Iterator[FlowNode]:
        for uri in current.outputs:
            if uri in start.inputs:
                yield start
            yield from (reader for reader in self.readers(uri) if reader.id != start.id)

    def node_of(self, consumer: Consumer) -> FlowNode:
        """Return a flow with its references resolved."""
        schedule, data = consumer.schedule, consumer.options.data
        outputs = {uri: output for output in data.outputs if (uri := self._resolve(output.asset)) is not None}
        named = self._resolved(_named_tokens(schedule))
        starts = self._resolved(schedule.keeping.start_tokens if schedule.keeping is not None else ())
        inlets = self._resolved([*data.inlets, *(token for output in data.outputs for token in output.inlets)])
        inputs = frozenset(uri for uri in inlets | named if uri not in outputs or uri in named)
        depends = {
            uri: (self._resolved(output.inlets) | starts) & inputs if output.inlets else inputs
            for uri, output in outputs.items()
        }
        return FlowNode(
            consumer,
            tuple(sorted(inputs)),
            depends,
            {uri: output.code_version for uri, output in outputs.items()},
            starts or inputs,
            self._mappers(schedule, inputs),
            {uri: policy for token, policy in data.policies.items() if (uri := self._resolve(token)) is not None},
        )

    def _mappers(self, schedule: Schedule, inputs: Iterable[str]) -> dict[str, PartitionMapper]:
        if is_partitioned(schedule):
            parts = schedule.partitioning or _BY_KEY
            return {uri: parts.mapper_for(self._tokens_of(uri) | {Token("uri", uri)}) for uri in inputs}
        pairs = schedule.keeping.mappers if schedule.keeping is not None else ()
        found = {self._resolve(target.token): mapper for target, mapper in reversed(pairs)}
        return {uri: found[uri] for uri in inputs if uri in found}

    def _resolved(self, tokens: Iterable[Token]) -> frozenset[str]:
        found = (self._resolve(token) for token in tokens)
        return frozenset(uri for uri in found if uri is not None)

    def _all_in_order(self) -> Iterable[int]:
        """Return all flows by name, each after the makers of its inputs."""
        placed: dict[int, None] = {}
        for first in sorted(self._nodes.values(), key=_name):
            work_out(first.id, int, lambda each: reversed([*self._all_makers(each)]), lambda _: None, placed)
        return placed


def is_partitioned(schedule: Schedule) -> bool:
    """Return True if the runs of a flow have keys."""
    return schedule.is_partitioned or isinstance(schedule.timetable, PartitionedAtRuntime | CronPartitionTimetable)


def _copied(index: Mapping[str, dict[K, None]]) -> dict[str, dict[K, None]]:
    return {value: found.copy() for value, found in index.items()}


def _named_tokens(schedule: Schedule) -> Iterator[Token]:
    leaves = () if schedule.condition is None else schedule.condition.leaves
    yield from (leaf.token for leaf in leaves if isinstance(leaf, Asset | AssetRef))
    if schedule.keeping is not None:
        yield from schedule.keeping.start_tokens


def _name(node: FlowNode) -> str:
    return node.consumer.name


def _reads_earlier_periods(node: FlowNode) -> bool:
    own = [uri for uri in node.inputs if uri in node.outputs]
    mappers = [node.mappers.get(uri) for uri in own]
    return node.is_partitioned and all(
        isinstance(mapper, TimeWindowMapper) and mapper.ends_before_target for mapper in mappers
    )


def reached(first: Iterable[K], following: Callable[[K], Iterable[K]]) -> dict[K, None]:
    """Return some nodes, and all that follow them, directly or through others."""
    found = dict.fromkeys(first)
    waiting = list(found)
    while waiting:
        new = [each for each in dict.fromkeys(following(waiting.pop())) if each not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return found


def work_out(
    start: N,
    name: Callable[[N], K],
    above: Callable[[N], Iterable[N]],
    find: Callable[[N], V],
    known: dict[K, V],
) -> V:
    """Return the value of a node, which follows from the values of the nodes above it.

    In a circle, the values are computed until none of them changes, so that it does not matter where it begins.

    Parameters:
        name: returns the key of a node in `known`.
        find: works out the value of a node from `known`. It begins without those of the nodes above in its circle.
        known: the values that earlier calls worked out. Those of this call are added.
    """
    waiting, entered, is_circle = [start], dict[K, N](), False
    while waiting:
        node = waiting[-1]
        key = name(node)
        if key in known:
            waiting.pop()
        elif key not in entered:
            entered[key] = node
            new = [each for each in above(node) if name(each) not in known]
            is_circle = is_circle or any(name(each) in entered for each in new)
            waiting += new
        else:
            known[key] = find(waiting.pop())
    while is_circle:
        found = {key: find(node) for key, node in entered.items()}
        is_circle = any(known[key] != value for key, value in found.items())
        known |= found
    return known[name(start)]
