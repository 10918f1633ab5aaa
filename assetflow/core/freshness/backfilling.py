"""Backfill an asset, and what lies below it: targets, waves, and what comes next (contract 8.18)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from uuid import UUID, uuid5

from assetflow.core.freshness.graph import FlowNode, reached
from assetflow.core.freshness.reads import all_keys, mapped_keys, reads_key
from assetflow.core.freshness.records import OPEN, Backfill, BackfillItem, Run, RunState, Target
from assetflow.core.freshness.state.state import FreshnessState
from assetflow.core.grouping import grouped
from assetflow.errors import InvalidCall

MOST_EDGES = 1_000_000

_NAMESPACE = UUID("c0b0d7f2-3f0e-5a67-9d2c-8e2f6a1b4d90")

Above = dict[Target, Collection[Target]]


def targets_of(freshness: FreshnessState, uri: str, keys: Sequence[str] | None, *, down: bool) -> Above:
    """Return the targets of a backfill, upper ones first, each with those that have to be done before it.

    Parameters:
        uri: the asset whose maker runs.
        keys: the target keys of the maker; `None` for all known ones.
        down: whether the targets below run too.

    Raises:
        InvalidCall: nothing makes the asset, or keys are given for a flow without partitions.
    """
    maker = freshness.graph.maker(uri)
    if maker is None:
        raise InvalidCall(f"nothing makes {uri}", rule="8.18", fix="Name an asset that a deployed flow makes")
    if keys is not None and not maker.is_partitioned:
        raise InvalidCall(f"{maker.consumer.name} has no partitions", rule="8.18", fix="Leave the keys out")
    first = [*dict.fromkeys(keys)] if keys is not None else all_keys(freshness, maker)
    found: Above = {Target(maker.id, key): () for key in first}
    numbers = _numbers_below(freshness, maker) if down else ()
    edges = 0
    for node in freshness.graph.parents_first(numbers):
        if node.id != maker.id:
            below = _targets_below(freshness, node, found)
            found |= below
            edges += sum(map(len, below.values()))
            if edges > MOST_EDGES:
                raise InvalidCall(
                    f"the backfill of {uri} has too many targets that wait for each other",
                    rule="8.18",
                    fix="Give fewer keys",
                )
    return found


def steps_of(freshness: FreshnessState, above: Above) -> list[BackfillItem]:
    """Return the targets of a backfill as its steps, by the name of their consumer and by key."""
    wave: dict[Target, int] = {}
    for target, before in above.items():
        wave[target] = max((wave[each] + 1 for each in before), default=0)
    names = {target.consumer: _name(freshness, target) for target in above}
    ordered = sorted(above, key=lambda target: (names[target.consumer], target.key or ""))
    return [BackfillItem(place, target, wave[target], len(above[target])) for place, target in enumerate(ordered)]


def edges_of(steps: Iterable[BackfillItem], above: Above) -> Iterator[tuple[int, int]]:
    """Yield the places of each pair of targets of which the lower one waits for the upper one."""
    places = {step.target: step.place for step in steps}
    for target, before in above.items():
        for each in before:
            yield places[each], places[target]


def waves_of(steps: Iterable[BackfillItem]) -> list[list[Target]]:
    """Return the targets in waves: each runs when those above it in the waves before are done."""
    waves = grouped((step.wave, step.target) for step in steps)
    return [waves[number] for number in sorted(waves)]


def run_id(backfill: Backfill, deployment_id: UUID, key: str | None, attempt: int = 0) -> UUID:
    """Return the id of the decision for a target of a backfill, so that it runs once whatever crashes."""
    again = f"|{attempt}" if attempt else ""
    of = f"backfill|{backfill.number}|{backfill.made.isoformat()}|{deployment_id}|{key or ''}"
    return uuid5(_NAMESPACE, of + again)


def take_ready(freshness: FreshnessState, backfill: Backfill, now: datetime) -> list[BackfillItem]:
    """Return the targets of a backfill that run next, and note that they are asked for."""
    if backfill.stopped is not None:
        return []
    most = None if backfill.concurrency is None else max(0, backfill.concurrency - backfill.asked)
    free = (step for step in freshness.backfills.ready(backfill.number) if not freshness.runs.is_busy(step.target))
    found = list(islice(free, most))
    for step in found:
        freshness.backfills.save(backfill.number, replace(step, state="asked"), now)
    return found


def note_end(freshness: FreshnessState, run: Run, state: RunState, now: datetime) -> None:
    """Note in the backfills that a run of theirs ended; a failure takes off what is below it."""
    for backfill, step in _steps_of(freshness, run, freshness.backfills.live):
        if step.state in ("asked", "failed"):
            _end(freshness, backfill, step, now, done=state == "completed")


def note_retry(freshness: FreshnessState, run: Run, now: datetime) -> None:
    """Note in the backfills that somebody retries a run of theirs; a backfill that had ended is open again."""
    for backfill, step in _steps_of(freshness, run, partial(freshness.backfills.of_target, run.target)):
        if step.state == "failed":
            freshness.backfills.set(replace(backfill, ended=None))
            freshness.backfills.save(backfill.number, replace(step, state="asked"), now)


def _steps_of(
    freshness: FreshnessState, run: Run, backfills: Callable[[], Iterable[Backfill]]
) -> Iterator[tuple[Backfill, BackfillItem]]:
    """Yield the backfills that asked for a run, each with the target that it runs for."""
    node = freshness.graph.find(run.target.consumer)
    if node is None or run.kind != "backfill":
        return
    for backfill in backfills():
        step = freshness.backfills.find(backfill.number, run.target)
        if step is not None and run.id == run_id(backfill, node.consumer.deployment_id, run.target.key, step.attempt):
            yield backfill, step


def _end(freshness: FreshnessState, backfill: Backfill, step: BackfillItem, now: datetime, *, done: bool) -> None:
    if done:
        for each in freshness.backfills.below(backfill.number, [step.place]):
            # A failure of a run that was retried has taken it off.
            is_back = (
                each.state == "removed" and each.waits == 1 and freshness.graph.find(each.target.consumer) is not None
            )
            state = "todo" if is_back else each.state
            freshness.backfills.save(backfill.number, replace(each, waits=each.waits - 1, state=state), now)
    else:
        _remove_below(freshness, backfill, [step], now)
    freshness.backfills.save(backfill.number, replace(step, state="done" if done else "failed"), now)
    freshness.agenda.add(step.target)


def take_off(freshness: FreshnessState, consumer: int, now: datetime) -> None:
    """Take the targets of a removed consumer off the backfills, and what is below them."""
    for backfill in freshness.backfills.live():
        gone = freshness.backfills.in_states(backfill.number, OPEN, consumer)
        _remove_below(freshness, backfill, gone, now)
        _remove(freshness, backfill, gone, now)


def _remove_below(freshness: FreshnessState, backfill: Backfill, steps: Sequence[BackfillItem], now: datetime) -> None:
    while steps:
        below = freshness.backfills.below(backfill.number, [step.place for step in steps])
        steps = [step for step in below if step.state == "todo"]
        _remove(freshness, backfill, steps, now)


def _remove(freshness: FreshnessState, backfill: Backfill, steps: Iterable[BackfillItem], now: datetime) -> None:
    for step in steps:
        freshness.backfills.save(backfill.number, replace(step, state="removed"), now)
        freshness.agenda.add(step.target)


def begin_backfill(freshness: FreshnessState, above: Above, backfill: Backfill) -> None:
    """Begin a backfill of these targets. Without any it is over at once."""
    steps = steps_of(freshness, above)
    ended = None if steps else backfill.made
    freshness.backfills.add(replace(backfill, todo=len(steps), ended=ended), steps, edges_of(steps, above))


def go_on(freshness: FreshnessState, backfill: Backfill, consumers: Iterable[int], now: datetime) -> None:
    """Begin a backfill whose targets are written, and take off the targets of consumers removed meanwhile."""
    freshness.backfills.set(backfill)
    for consumer in consumers:
        if freshness.graph.find(consumer) is None:
            take_off(freshness, consumer, now)


def stop_backfill(freshness: FreshnessState, backfill: Backfill, now: datetime) -> None:
    """Ask for nothing more of a backfill. Its runs continue; targets that waited may run for other reasons."""
    freshness.backfills.set(replace(backfill, stopped=now))
    for node in freshness.graph.all():
        for target in freshness.targets.with_verdict("backfill", node.id) if node.keeping is not None else ():
            freshness.agenda.add(target)


def resume_backfill(freshness: FreshnessState, backfill: Backfill, now: datetime) -> None:
    """Resume a backfill: run what is left of it, and again what failed or was taken off because of that."""
    again = freshness.backfills.in_states(backfill.number, ("failed", "removed"))
    left = backfill.todo + backfill.asked + len(again)
    freshness.backfills.set(replace(backfill, stopped=None, ended=None if left else backfill.ended))
    for step in again:
        attempt = step.attempt + (step.state == "failed")
        freshness.backfills.save(backfill.number, replace(step, state="todo", attempt=attempt), now)
    for consumer in {step.target.consumer for step in again}:
        if freshness.graph.find(consumer) is None:
            take_off(freshness, consumer, now)


def _numbers_below(freshness: FreshnessState, maker: FlowNode) -> Collection[int]:
    """Return the flows below that a backfill runs: not those with event schedules, nor what only they feed."""

    def readers(node: FlowNode) -> Iterator[FlowNode]:
        found = (reader for uri in node.outputs for reader in freshness.graph.readers(uri))
        return (reader for reader in found if reader.consumer.schedule.condition is None)

    return [node.id for node in reached([maker], readers)]


def _targets_below(freshness: FreshnessState, node: FlowNode, found: Above) -> Above:
    """Map each target of a flow to the backfill targets that it reads."""
    above: dict[Target, dict[Target, None]] = {}
    made = [(target, uri, mapped_keys(node, uri, target.key)) for target, uri in _made_for(freshness, node, found)]
    # What belongs to every target belongs to those, too, that the backfill itself makes known.
    for target, uri, keys in sorted(made, key=lambda each: each[2] is None):
        known = dict.fromkeys([*all_keys(freshness, node), *(each.key for each in above)]) if keys is None else keys
        for key in known:
            if reads_key(freshness, node, key, uri, target.key):
                above.setdefault(Target(node.id, key), {})[target] = None
    return {target: tuple(before) for target, before in above.items()}


def _made_for(freshness: FreshnessState, node: FlowNode, found: Above) -> Iterator[tuple[Target, str]]:
    """Yield the targets of other flows in a backfill, each with the inputs of a flow that it makes."""
    for target in found:
        maker = freshness.graph.find(target.consumer)
        if maker is not None and maker.id != node.id:
            yield from ((target, uri) for uri in node.inputs if uri in maker.outputs)


def _name(freshness: FreshnessState, target: Target) -> str:
    node = freshness.graph.find(target.consumer)
    return "" if node is None else node.consumer.name
