"""All checks of the lint that need no server and no source: those of one flow, those over all flows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid5

from assetflow.core.freshness import deploying as freshness
from assetflow.core.lint.assets import Assets
from assetflow.core.lint.conditions import check_condition, check_waits
from assetflow.core.lint.findings import Finding, SeenFlow
from assetflow.core.lint.keys import check_formats, check_mappers
from assetflow.core.rules import registry
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Consumer
from assetflow.core.wire.declarations import declaration_to_text
from assetflow.errors import AssetflowError

_NAMESPACE = UUID("6a0a9c2b-5c0c-5e55-9d6e-0d6b8f0c7a11")
_DEPLOY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Project:
    """What a lint looks at.

    Attributes:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows; they only help to say what was meant.
    """

    flows: Sequence[SeenFlow]
    external: Collection[str] = ()
    deployed: Collection[str] = field(default=())


def lint(project: Project) -> Iterator[Finding]:
    """Yield what is wrong with the schedules of flows. Contract 11.1."""
    flows = sorted(project.flows, key=lambda flow: flow.name)
    for flow in flows:
        yield from check_condition(flow)
        yield from check_mappers(flow)
        yield from check_waits(flow)
    yield from Assets(flows, project.external, project.deployed).check()
    yield from check_formats(flows)
    yield from _refused(flows)


def _refused(flows: Sequence[SeenFlow]) -> Iterator[Finding]:
    """Deploy the flows in memory, one after the other as an evaluator does, and find those that are refused."""
    state = State()
    for number, flow in enumerate(flows, 1):
        consumer = Consumer(number, flow.name, uuid5(_NAMESPACE, flow.name), flow.declaration.options)
        try:
            declaration_to_text(flow.declaration)
            if flow.declaration.options.takes_part:
                registry.deploy(state, consumer)
                freshness.follow(state.freshness, None, consumer, _DEPLOY)
        except AssetflowError as error:
            where = f"{error.where}: " if error.where else ""
            yield flow.finding("AF002", f"a deploy refuses it: {where}{error.message}", error.fix)
