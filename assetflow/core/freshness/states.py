"""Judge the states of freshness policies: the last part of an instant (contract 8.13, 9.6).

A state is judged as of its instant, however late it is looked at: what was recorded after it does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assetflow.core.freshness.causes import Cause
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import policy_inputs
from assetflow.core.freshness.moments import DataTime
from assetflow.core.freshness.records import Item
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.state.policies import PolicyChange, PolicyRecord, has_to_be_told, judged
from assetflow.core.freshness.status import causes_of

_INSTANT = timedelta(microseconds=1)


def judge_states(book: Book, until: datetime, since: datetime | None = None) -> None:
    """Judge the policies that may have changed, at each instant up to a moment, and tell what changed.

    Parameters:
        since: the first instant at which anything is judged; `None` for all that are past.
    """
    taken = book.policies.take(until)
    if taken:
        judge = _StateJudge(book, until, since)
        book.policies.tell(change for uri, touched in sorted(taken.items()) for change in judge.changes(uri, touched))


def settle_states(book: Book, number: int, now: datetime) -> None:
    """Tell which states changed before now by the policies of a flow, before a deploy changes them."""
    node = book.graph.find(number)
    if node is not None and (node.policies or book.graph.declares_any(node.outputs)):
        before = now - _INSTANT
        judge, touches = _StateJudge(book, before), book.policies.touches(before)
        for uri in sorted({*node.outputs, *node.policies}):
            book.policies.tell(judge.changes(uri, [at for touched, at in touches if touched == uri]))


def count_as_told(book: Book, now: datetime) -> None:
    """Judge all policies without telling anybody: a rebuilt ledger does not know what was told before (8.17)."""
    book.policies.take(now)
    judge = _StateJudge(book, now)
    for uri, record in book.policies.all().items():
        judge.judge(uri, record, now)


class _StateJudge:
    """Judges policies at instants up to a moment."""

    def __init__(self, book: Book, until: datetime, since: datetime | None = None) -> None:
        self._book = book
        self._until = until
        self._since = since
        self._data_times: dict[datetime, DataTimes] = {}

    def changes(self, uri: str, touched: Sequence[datetime]) -> Iterator[PolicyChange]:
        """Yield the changes that have to be told of, at the instants of updates and in between."""
        record = self._book.policies.find(uri)
        if record is None:
            return
        # What is decided stays decided: an update that is heard of late changes the state from its last change on.
        ahead = sorted({max(at, record.since, record.state_since or at) for at in touched}, reverse=True)
        while at := self._next(record, ahead):
            while ahead and ahead[-1] <= at:
                ahead.pop()
            before, record = record, self.judge(uri, record, at)
            if has_to_be_told(before.state, record.state):
                yield self._change(uri, record, at)

    def judge(self, uri: str, record: PolicyRecord, at: datetime) -> PolicyRecord:
        """Judge a policy at an instant, and return what is remembered of it."""
        data_time = self._data_time(uri, record, at)
        state = record.policy.judge(data_time, record.since, at)
        following = record.policy.next_change(data_time, record.since, at)
        found = replace(judged(record, state, at, data_time), next_change=following)
        self._book.policies.save(uri, found)
        return found

    def _next(self, record: PolicyRecord, ahead: Sequence[datetime]) -> datetime | None:
        moments = [*ahead[-1:], *([] if record.next_change is None else [record.next_change])]
        found = min((each for each in moments if each <= self._until), default=None)
        return found if found is None or self._since is None else max(found, self._since)

    def _data_time(self, uri: str, record: PolicyRecord, at: datetime) -> DataTime | None:
        if at not in self._data_times:
            self._data_times[at] = DataTimes(self._book, at)
        return self._data_times[at].of_asset(uri, policy_inputs(self._book, record))

    def _change(self, uri: str, record: PolicyRecord, at: datetime) -> PolicyChange:
        maker = self._book.graph.maker(uri)
        lag = record.policy.lag(record.data_time, record.since, at)
        causes = tuple(dict.fromkeys(self._causes(uri)))
        of = None if maker is None else maker.id
        return PolicyChange(uri, record.state, at, record.data_time, record.policy, lag, causes, of)

    def _causes(self, uri: str) -> Iterator[Cause]:
        maker = self._book.graph.maker(uri)
        if maker is not None:
            greatest = self._book.updates.greatest_keys(uri, 1)
            key = greatest[0] if greatest and maker.is_partitioned else None
            yield from causes_of(self._book, maker, Item(uri, key))
