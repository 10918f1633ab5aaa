"""All checks of the lint that need no server and no source: those of one flow, those over all flows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assetflow.core.lint.assets import Assets, check_condition, check_formats, check_mappers, check_waits
from assetflow.core.lint.findings import Finding, SeenFlow


def lint(
    flows: Sequence[SeenFlow], external: Collection[str] = (), deployed: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield what is wrong with the schedules of flows. Contract 11.1.

    Parameters:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows; they only help to say what was meant.
    """
    flows = sorted(flows, key=lambda flow: flow.name)
    for flow in flows:
        yield from check_condition(flow)
        yield from check_mappers(flow)
        yield from check_waits(flow)
    yield from Assets(flows, external, deployed).check()
    yield from check_formats(flows)
