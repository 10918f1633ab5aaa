"""What freshness policies demand: when they are due, whom they pull, and whether they can be held (8.14, 8.15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial

from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.reads import causes_of, is_same
from assetflow.core.freshness.records import Chain, Item, PolicyChange, PolicyRecord, Target
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.freshness.state.targets import is_reported, judged
from assetflow.core.values.freshness_policy import CURRENT, DataTime, is_before
from assetflow.core.values.keeping import Cause

_SHORTEST_PERIOD = timedelta(seconds=60)


@dataclass(frozen=True)
class Demand:
    """The demand of a policy on the maker of its asset.

    Attributes:
        due: when the maker has to start.
        need: the data time that its inputs must have.
        at_once: it is due from its policy's beginning on, because the asset was never made.
    """

    uri: str
    maker: FlowNode
    due: datetime
    need: datetime
    at_once: bool = False


@dataclass
class Pull:
    """The policies that pull a consumer, and since when the first of them has been due."""

    due: datetime
    uris: dict[str, None]


class Demands:
    """The demands of all policies at one moment."""

    def __init__(self, freshness: FreshnessState, data_times: DataTimes, now: datetime) -> None:
        self._freshness = freshness
        self._data_times = data_times
        self._now = now
        self._chains: dict[int, timedelta] = {}

    def demand(self, uri: str) -> Demand | None:
        """Return what the policy of an asset demands, now or next; `None` if nothing is due without other news."""
        record, maker = self._freshness.policies.find(uri), self._freshness.graph.maker(uri)
        if record is None or maker is None or maker.keeping is None or maker.is_partitioned:
            return None
        data_time = self._served(uri, maker, record)
        lag = record.policy.maximum_lag
        lead = min(self.chain(maker) + lag / 10, lag)
        if record.policy.deadline is not None:
            return self._at_deadline(uri, maker, record, data_time, lead)
        period = max(lag - lead, _SHORTEST_PERIOD)
        if data_time is None:
            return Demand(uri, maker, record.since, record.since - period / 2, at_once=True)
        if not isinstance(data_time, datetime):
            return None
        return Demand(uri, maker, data_time + period, data_time + period / 2)

    def pulls(self, demands: Iterable[Demand]) -> Mapping[int, Pull]:
        """Return the consumers that the demands pull, the makers and what is above them."""
        found: dict[int, Pull] = {}
        for demand in demands:
            for number in self._pulled(demand):
                pull = found.setdefault(number, Pull(demand.due, {}))
                pull.due = min(pull.due, demand.due)
                pull.uris[demand.uri] = None
        return found

    def chain(self, node: FlowNode) -> timedelta:
        """Return how long a consumer and what has to run before it take (8.15)."""
        graph = self._freshness.graph
        if node.id not in self._chains:
            for each in graph.parents_first(graph.above(node.id)):
                makers = (maker for uri in each.inputs for maker in graph.keepers(uri))
                longest = max((self._chains.get(maker.id, timedelta()) for maker in makers), default=timedelta())
                self._chains[each.id] = self.expected(each) + longest
        return self._chains[node.id]

    def expected(self, node: FlowNode) -> timedelta:
        """Return how long a run of a consumer is expected to take (8.15)."""
        durations = sorted(self._freshness.runs.durations(node.id))
        if durations:
            return durations[-(-len(durations) * 9 // 10) - 1]
        given = node.keeping.expected_duration if node.keeping is not None else None
        return given or timedelta()

    def way(self, uri: str) -> Chain:
        """Return the flows that take longest one after the other until an asset is made, its maker last (8.15)."""
        node = self._freshness.graph.maker(uri)
        found: dict[int, tuple[str, timedelta]] = {}
        while node is not None:
            found[node.id] = (node.consumer.name, self.expected(node))
            above = (maker for each in node.inputs for maker in self._freshness.graph.keepers(each))
            # A flow that reads its own output takes no further step.
            node = max((maker for maker in above if maker.id not in found), key=self.chain, default=None)
        return tuple(reversed(found.values()))

    def can_be_held(self, uri: str) -> bool:
        """Return True if the chain of a policy's maker is short enough to hold it (8.15)."""
        record, maker = self._freshness.policies.find(uri), self._freshness.graph.maker(uri)
        return record is None or maker is None or self.chain(maker) <= record.policy.longest_chain

    def _at_deadline(
        self, uri: str, maker: FlowNode, record: PolicyRecord, data_time: DataTime | None, lead: timedelta
    ) -> Demand | None:
        policy, lag = record.policy, record.policy.maximum_lag
        missed = policy.last_deadline(record.since, self._now)
        if missed is not None and (data_time is None or is_before(data_time, missed - lag)):
            return Demand(uri, maker, missed, missed - lag)
        if data_time is not None and not isinstance(data_time, datetime):
            return None
        after = self._now if data_time is None else max(self._now, data_time + lag)
        deadline = policy.next_deadline(after)
        return None if deadline is None else Demand(uri, maker, max(deadline - lead, deadline - lag), deadline - lag)

    def _served(self, uri: str, maker: FlowNode, record: PolicyRecord) -> DataTime | None:
        """Return the data time of an asset, where a run that failed for good counts as if its start were that.

        Then a good run of a Lazy flow without inputs does so, too, or it would be asked for without pause.
        """
        data_time = self._data_times.of_asset(uri, policy_inputs(self._freshness, record))
        found = [(number, self._freshness.flow_record(number)) for number in self._freshness.graph.above(maker.id)]
        flows = [(self._freshness.graph.find(number), flow) for number, flow in found if flow is not None]
        failed = [flow.failed for _, flow in flows if flow.failed is not None]
        if not failed or data_time is CURRENT:
            return data_time
        roots = [flow.good for node, flow in flows if node is not None and node.is_lazy and not node.inputs]
        return max(moment for moment in (data_time, *failed, *roots) if moment is not None)

    def _pulled(self, demand: Demand) -> Iterable[int]:
        freshness = self._freshness
        record = freshness.policies.find(demand.uri)
        only = None if record is None else policy_inputs(freshness, record)
        found = {demand.maker.id: None}
        waiting = [demand.maker]
        while waiting:
            node = waiting.pop()
            if freshness.runs.of(node.id):
                continue
            pulls_all = self._has_failed_for_good(node)
            for uri in node.inputs:
                if node.id == demand.maker.id and only is not None and uri not in only:
                    continue
                makers = [maker for maker in freshness.graph.keepers(uri) if maker.id not in found]
                if makers and (pulls_all or self._is_older(uri, demand.need)):
                    found |= dict.fromkeys(maker.id for maker in makers)
                    waiting += makers
        return found

    def _is_older(self, uri: str, need: datetime) -> bool:
        data_time = self._data_times.of_asset(uri)
        return data_time is None or is_before(data_time, need)

    def _has_failed_for_good(self, node: FlowNode) -> bool:
        record = self._freshness.targets.find(Target(node.id))
        if record.tried is None or record.failures <= (0 if node.keeping is None else node.keeping.retries):
            return False
        return is_same(self._freshness, node, None, record.tried)


def policy_inputs(freshness: FreshnessState, record: PolicyRecord) -> frozenset[str] | None:
    """Return the inputs whose data a policy counts; `None` for all."""
    given = record.policy.inputs
    return (
        None
        if given is None
        else frozenset(uri for each in given if (uri := freshness.resolve(each.token)) is not None)
    )


_INSTANT = timedelta(microseconds=1)


def judge_states(freshness: FreshnessState, until: datetime, since: datetime | None = None) -> None:
    """Judge the policies that may have changed, at each instant up to a moment, and report what changed.

    Parameters:
        since: the first instant at which anything is judged; `None` for all that are past.
    """
    taken = freshness.policies.take(until)
    if taken:
        judge = _StateJudge(freshness, until, since)
        freshness.policies.report(
            change for uri, touched in sorted(taken.items()) for change in judge.changes(uri, touched)
        )


def settle_states(freshness: FreshnessState, number: int, now: datetime) -> None:
    """Report the changes of states before now by the present policies of a flow, before a deploy replaces them."""
    node = freshness.graph.find(number)
    if node is not None and (node.policies or freshness.graph.declares_any(node.outputs)):
        before = now - _INSTANT
        judge, touches = _StateJudge(freshness, before), freshness.policies.touches(before)
        for uri in sorted({*node.outputs, *node.policies}):
            freshness.policies.report(judge.changes(uri, [at for touched, at in touches if touched == uri]))


def judge_silently(freshness: FreshnessState, now: datetime) -> None:
    """Judge all policies without reporting changes: a rebuilt ledger does not know what was reported before (8.17)."""
    freshness.policies.take(now)
    judge = _StateJudge(freshness, now)
    for uri, record in freshness.policies.all().items():
        judge.judge(uri, record, now)


class _StateJudge:
    """Judges policies at instants up to a moment."""

    def __init__(self, freshness: FreshnessState, until: datetime, since: datetime | None = None) -> None:
        self._freshness = freshness
        self._until = until
        self._since = since
        self._data_times = cache(partial(DataTimes, freshness))

    def changes(self, uri: str, touched: Sequence[datetime]) -> Iterator[PolicyChange]:
        """Yield the changes to report, at the instants of updates and in between."""
        record = self._freshness.policies.find(uri)
        if record is None:
            return
        # Reported states stay as they were: a late update changes the state from the last reported change on.
        ahead = sorted({max(at, record.since, record.state_since or at) for at in touched}, reverse=True)
        while at := self._next(record, ahead):
            while ahead and ahead[-1] <= at:
                ahead.pop()
            before, record = record, self.judge(uri, record, at)
            if is_reported(before.state, record.state):
                yield self._change(uri, record, at)

    def judge(self, uri: str, record: PolicyRecord, at: datetime) -> PolicyRecord:
        """Judge a policy at an instant, and return what is remembered of it."""
        data_time = self._data_time(uri, record, at)
        state = record.policy.judge(data_time, record.since, at)
        following = record.policy.next_change(data_time, record.since, at)
        found = replace(judged(record, state, at, data_time), next_change=following)
        self._freshness.policies.save(uri, found)
        return found

    def _next(self, record: PolicyRecord, ahead: Sequence[datetime]) -> datetime | None:
        moments = [*ahead[-1:], *([] if record.next_change is None else [record.next_change])]
        found = min((each for each in moments if each <= self._until), default=None)
        return found if found is None or self._since is None else max(found, self._since)

    def _data_time(self, uri: str, record: PolicyRecord, at: datetime) -> DataTime | None:
        return self._data_times(at).of_asset(uri, policy_inputs(self._freshness, record))

    def _change(self, uri: str, record: PolicyRecord, at: datetime) -> PolicyChange:
        maker = self._freshness.graph.maker(uri)
        lag = record.policy.lag(record.data_time, record.since, at)
        causes = tuple(dict.fromkeys(self._causes(uri)))
        of = None if maker is None else maker.id
        return PolicyChange(uri, record.state, at, record.data_time, record.policy, lag, causes, of)

    def _causes(self, uri: str) -> Iterator[Cause]:
        maker = self._freshness.graph.maker(uri)
        if maker is not None:
            greatest = self._freshness.updates.greatest_keys(uri, 1)
            key = greatest[0] if greatest and maker.is_partitioned else None
            yield from causes_of(self._freshness, maker, Item(uri, key))
