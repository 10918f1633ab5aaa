"""Whether a condition holds: the one place that decides (4.1, 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from assetflow.core.book import Pending
from assetflow.core.conditions import Condition, Gate, Token
from assetflow.core.partitions import RollupMapper
from assetflow.core.schedules import Schedule

TokensOf = Callable[[str], frozenset[Token]]


def holds(condition: Condition, facts: Collection[Token]) -> bool:
    """Whether a condition is true when the leaves with these tokens are; AND of nothing is true, OR of it is false."""
    values: list[bool] = []
    for node in condition.postfix:
        if isinstance(node, Gate):
            start = len(values) - node.arity
            members = values[start:]
            del values[start:]
            values.append(all(members) if node.kind == "all" else any(members))
        else:
            values.append(node.token in facts)
    return values[0]


def facts_of(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> set[Token]:
    """The tokens of the assets that count as updated: those with a queued event, rolled-up ones when complete."""
    facts: set[Token] = set()
    for uri, keys in pending.items():
        tokens = tokens_of(uri)
        if not schedule.has_rollup or is_complete(schedule, target_key, keys, tokens):
            facts |= tokens
    return facts


def is_complete(
    schedule: Schedule, target_key: str | None, keys: Collection[str | None], tokens: frozenset[Token]
) -> bool:
    """Whether the events of one asset suffice for the target key: its wait policy is met, if it is rolled up (5.2)."""
    if schedule.partitioning is None or target_key is None:
        return True
    mapper = schedule.partitioning.mapper_for(tokens)
    if not isinstance(mapper, RollupMapper):
        return True
    return mapper.is_met(target_key, [key for key in keys if key is not None])


def evaluate(schedule: Schedule, target_key: str | None, pending: Pending, tokens_of: TokensOf) -> bool:
    """Whether a schedule's condition holds over its queued events; never without one (4.1)."""
    if schedule.condition is None or not pending:
        return False
    # Most events meet a condition that still lacks an asset; that is seen without looking at each leaf.
    if not pending.keys() >= schedule.condition.needed_uris:
        return False
    if schedule.condition.needs_nothing_else and not schedule.has_rollup:
        return True
    return holds(schedule.condition, facts_of(schedule, target_key, pending, tokens_of))
