"""Follow deploys, pauses and removals: in the data graph, policies, and what `catchup` asks for (8.1, 8.8, 8.11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from assetflow.core.freshness.backfilling import take_off
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.judging import has_counting_cause, is_known, is_out_of_date
from assetflow.core.freshness.reads import all_keys, index_flow, inputs_now, read_ahead, touch_flow
from assetflow.core.freshness.records import FlowRecord, Target
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.values.consumers import Consumer
from assetflow.errors import InvalidSchedule


def follow(
    freshness: FreshnessState, before: Consumer | None, consumer: Consumer, now: datetime, since: datetime | None = None
) -> None:
    """Follow a consumer that is new, has other options, or was paused or resumed.

    Parameters:
        before: the consumer as it was; `None` for a new one.
        since: in a rebuilt ledger, when its policies begin; `None` for now.
    """
    if not freshness.admit(consumer):
        return
    old = freshness.graph.find(consumer.id)
    out_of_date = _out_of_date_before(freshness, old, before, consumer)
    compared = freshness.compared
    node = freshness.put(consumer)
    _index_flows(freshness, freshness.compared - compared, old, node)
    if node is not None and before is not None and before.options == consumer.options and old is not None:
        # After a pause, `catchup` says what runs (8.8).
        if old.consumer.paused and not node.consumer.paused and node.is_eager:
            _waive(freshness, node, {})
        touch_flow(freshness, node, now)
        return
    if node is None:
        if old is not None:
            _leave(freshness, old, now)
        return
    _remember(freshness, old, node, now)
    if old is not None and old.is_partitioned != node.is_partitioned:
        take_off(freshness, node.id, now)
    _declare_policies(freshness, [old, node], since or now)
    # A rebuilt ledger has asked for it, or waived it, before it was lost (8.17).
    if node.is_eager and since is None:
        _waive(freshness, node, out_of_date)
    touch_flow(freshness, node, now)
    _touch_neighbours(freshness, [old, node])


def _index_flows(freshness: FreshnessState, uris: Iterable[str], old: FlowNode | None, node: FlowNode | None) -> None:
    """Fill the indexes of a flow that has other mappers, and of those that read or make assets newly compared.

    Parameters:
        uris: the assets that were not compared before, and may have keys.
    """
    found = [each for uri in sorted(uris) for each in (*freshness.graph.readers(uri), *freshness.graph.makers(uri))]
    if node is not None and (old is None or (old.mappers, old.is_partitioned) != (node.mappers, node.is_partitioned)):
        found.append(node)
    for each in {each.id: each for each in found}.values():
        index_flow(freshness, each)


def leave(freshness: FreshnessState, number: int, now: datetime) -> None:
    """Forget a consumer that was removed: its outputs become sources (8.17)."""
    node = freshness.graph.find(number)
    if node is not None:
        freshness.remove(number)
        _leave(freshness, node, now)


def _leave(freshness: FreshnessState, node: FlowNode, now: datetime) -> None:
    freshness.save_flow(node.id, None)
    freshness.readings.forget(node.id)
    freshness.runs.forget(node.id)
    take_off(freshness, node.id, now)
    _declare_policies(freshness, [node], now)
    _touch_neighbours(freshness, [node])


def _out_of_date_before(
    freshness: FreshnessState, old: FlowNode | None, before: Consumer | None, consumer: Consumer
) -> Mapping[str | None, bool]:
    """Return the keys of an Eager flow that were out of date before a deploy, each with whether it still has to run.

    A key that failed has to run, a waived one does not. Keys that a good run left out of date are not in the answer.
    """
    if old is None or not old.is_eager or before is None or before.options == consumer.options:
        return {}
    keeping = consumer.schedule.keeping
    if keeping is None or keeping.catchup == "all":
        return {}
    keys = all_keys(freshness, old)
    read_ahead(freshness, old, keys)
    found: dict[str | None, bool] = {}
    for key in keys:
        has_failed = freshness.targets.find(Target(old.id, key)).failures > 0
        if has_counting_cause(freshness, old, key) and (has_failed or not is_known(freshness, old, key, "tried")):
            found[key] = not is_known(freshness, old, key, "waived")
    return found


def _waive(freshness: FreshnessState, node: FlowNode, before: Mapping[str | None, bool]) -> None:
    """Waive the targets that are out of date and for which `catchup` asks for no run.

    With `"latest"` it asks for the greatest key; with `"all"` for every key, and then nothing is waived.

    Parameters:
        before: the keys that were out of date before the deploy, each with whether it still has to run.
    """
    assert node.keeping is not None
    if node.keeping.catchup == "all":
        return
    keys, inputs = all_keys(freshness, node), inputs_now(freshness, node)
    read_ahead(freshness, node, keys)
    runs_latest = node.keeping.catchup == "latest"
    for key in reversed(keys):
        target = Target(node.id, key)
        if not before.get(key) and is_out_of_date(freshness, node, key):
            runs = runs_latest and key not in before
            freshness.targets.save(target, replace(freshness.targets.find(target), waived=None if runs else inputs))
            runs_latest = runs_latest and not runs


def _remember(freshness: FreshnessState, old: FlowNode | None, node: FlowNode, now: datetime) -> None:
    """Remember which parts of the flow this deploy changed."""
    known, moment = freshness.flow_record(node.id), freshness.moment(now)
    if known is None or old is None:
        record = FlowRecord(dict.fromkeys(node.outputs, moment), moment, moment, moment)
    else:
        is_same_code = old.code_versions == node.code_versions
        record = replace(
            known,
            outputs={uri: known.outputs.get(uri, moment) for uri in node.outputs},
            code=known.code if is_same_code else moment,
            reads=known.reads if (old.inputs, old.outputs) == (node.inputs, node.outputs) else moment,
            kept=known.kept if (old.is_eager, old.is_lazy) == (node.is_eager, node.is_lazy) else moment,
            failed=known.failed if is_same_code else None,
        )
    freshness.save_flow(node.id, record)


def _declare_policies(freshness: FreshnessState, nodes: Iterable[FlowNode | None], since: datetime) -> None:
    """Let the policies begin and end that the declarations of some flows concern."""
    concerned = [node for node in nodes if node is not None]
    if not any(node.policies or freshness.graph.declares_any(node.outputs) for node in concerned):
        return
    for uri in dict.fromkeys(uri for node in concerned for uri in (*node.outputs, *node.policies)):
        freshness.policies.declare(uri, freshness.graph.policy(uri), since)
        freshness.agenda.assets[uri] = None


def _touch_neighbours(freshness: FreshnessState, nodes: Iterable[FlowNode | None]) -> None:
    """Put the readers of these flows' outputs on the agenda: the makers that they wait for may have changed."""
    for node in nodes:
        for uri in node.outputs if node is not None else ():
            freshness.agenda.flows |= dict.fromkeys(freshness.graph.readers_ever(uri))


def check_flow(freshness: FreshnessState, consumer: Consumer) -> None:
    """Check a flow that is about to be deployed against those that are.

    Raises:
        InvalidSchedule: it makes nothing to keep up to date or what another Eager or Lazy flow makes, it would keep
            itself running, or a policy names inputs that the asset does not have.
    """
    if not freshness.admit(consumer):
        return
    node = freshness.graph.node_of(consumer)
    if node.keeping is not None:
        _check_outputs(freshness, node)
    way = freshness.graph.way_back(node)
    if way is not None:
        raise InvalidSchedule(
            f"these flows would keep each other running: {' → '.join(each.consumer.name for each in way)}",
            rule="8.10",
            fix="Take one of the inputs away; or read earlier periods of an own output, with a TimeWindowMapper",
        )
    _check_policies(freshness, node)


def _check_outputs(freshness: FreshnessState, node: FlowNode) -> None:
    if not node.outputs:
        raise InvalidSchedule(
            "the flow makes no asset that could be kept up to date",
            rule="8.1",
            fix="Give its tasks outlets, or write @flow(produces=[...])",
        )
    if node.is_lazy and node.is_partitioned:
        raise InvalidSchedule(
            "a Lazy flow has no partitions", rule="8.1", fix="Write Eager(...), and a freshness policy that alerts"
        )
    for uri in sorted(node.outputs):
        for other in freshness.graph.keepers(uri):
            if other.id != node.id:
                raise InvalidSchedule(
                    f"{uri} is made by the Eager or Lazy flow {other.consumer.name} already",
                    rule="8.1",
                    fix="Let one flow make it, or delete the old deployment if the flow was renamed; "
                    "a flow with another schedule may make it too",
                )


def _check_policies(freshness: FreshnessState, node: FlowNode) -> None:
    for uri, policy in node.policies.items():
        known = node.outputs.get(uri)
        if known is None:
            maker = freshness.graph.maker(uri)
            known = frozenset(node.inputs) if maker is None else maker.outputs[uri]
        for each in policy.inputs or ():
            if freshness.resolve(each.token) not in known:
                raise InvalidSchedule(
                    f"{each.describe()} is not an input of {uri}",
                    rule="8.11",
                    fix="Name inputs of the task that makes the asset",
                )
