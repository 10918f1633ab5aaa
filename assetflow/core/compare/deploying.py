"""What a deploy would change: the deploy itself, in a state that nobody writes. Contract 11.4, 11.5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count as numbers

from assetflow.core.compare.changes import (
    ChangeKind,
    Comparison,
    ConsumerChange,
    LostAsset,
    RunAtOnce,
    options_in_words,
)
from assetflow.core.explain.facts import names_in
from assetflow.core.freshness import deploying as freshness
from assetflow.core.rules import clock, opening_hours, registry
from assetflow.core.rules.keeping import keep_up_to_date
from assetflow.core.rules.state import State
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import count
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import AssetflowError


@dataclass(frozen=True)
class DeployedFlow:
    """A deployment as it is.

    Attributes:
        consumer: its consumer; `None` if it stands in the data graph only.
        text: its stored declaration.
        produces: what it declares to update.
    """

    name: str
    consumer: Consumer | None
    text: str
    produces: Collection[Token] = ()

    @property
    def wanted_tokens(self) -> Collection[Token]:
        return () if self.consumer is None else self.consumer.options.wanted_tokens


def compare(
    state: State,
    deployed: Sequence[DeployedFlow],
    wanted: Sequence[Deployed],
    now: datetime,
    *,
    renamed: Mapping[str, str] | None = None,
    keep: Collection[str] = (),
) -> Comparison:
    """Deploy flows in a state that its owner throws away, and return what has changed.

    Parameters:
        deployed, wanted: the deployments as they are, and as they would be. One with a problem is refused.
        renamed: the new names, each with the name before.
        keep: the deployments that stay as they are though nobody wants them.
    """
    deploy = _Deploy(state, now)
    before, renamed, kept = {each.name: each for each in deployed}, renamed or {}, frozenset(keep)
    changes: list[ConsumerChange] = []
    for each in sorted(wanted, key=lambda flow: flow.name):
        was = renamed.get(each.name, "")
        changes += deploy.change(each, before.get(was or each.name), was)
    refused = {each.consumer for each in changes if each.kind == "refused"}
    left = {each.name for each in wanted} | {*renamed.values()}
    others = [each for each in deployed if each.name not in left]
    gone = [each for each in others if each.name not in kept]
    for flow in gone:
        changes += deploy.remove(flow)
    stay = [each for each in deployed if each.name in refused] + [each for each in others if each.name in kept]
    lost = tuple(_lost(state, deployed, stay, [each for each in wanted if each.name not in refused]))
    touched = {name for each in changes for name in (each.consumer, each.was)}
    stays = sum(each.consumer is not None and each.name not in touched for each in deployed)
    return Comparison(tuple(changes), tuple(deploy.runs()), lost, stays)


class _Deploy:
    """Makes the changes of a deploy, one after the other."""

    def __init__(self, state: State, now: datetime) -> None:
        self._state = state
        self._now = now
        self._decisions: list[Decision] = []
        # No consumer of a ledger has such a number.
        self._numbers = numbers(1 << 40)

    def change(self, wanted: Deployed, before: DeployedFlow | None, was: str) -> Iterator[ConsumerChange]:
        """Deploy a flow, and yield what that changes, if it is or becomes a consumer."""
        options = wanted.options
        old = before.consumer if before is not None else None
        if not options.takes_part and wanted.problem is None:
            if before is not None:
                yield from self.remove(before)
            return
        if before is not None and not was and before.text == wanted.text:
            return
        words = None if old is None else options_in_words(old.options), options_in_words(options)
        superseded, mapped_anew = dict[str, int](), 0
        try:
            if wanted.problem is not None:
                raise wanted.problem
            if old is None or was:
                # A renamed deployment is another one, with an empty queue (3.6); the old one goes with its own.
                superseded = {} if old is None else self._drop(old)
                self._add(wanted)
            else:
                superseded, mapped_anew = self._change(old, options)
        except AssetflowError as error:
            why = f"{error.where}: {error.message}" if error.where else error.message
            after = words[1] if wanted.problem is None else None
            yield ConsumerChange("refused", wanted.name, words[0], after, was, why, error.fix)
            return
        kind: ChangeKind = "renamed" if was else "added" if old is None else "changed"
        had = old is not None and old.schedule.starts_runs and not was
        has = options.schedule.starts_runs
        automation = "" if had == has else "made" if has else "removed"
        begins = kind != "changed" and options.schedule.keeping is not None and options.schedule.keeping.is_eager
        yield ConsumerChange(kind, wanted.name, *words, was, "", "", superseded, mapped_anew, automation, begins)

    def remove(self, flow: DeployedFlow) -> Iterator[ConsumerChange]:
        """Remove a deployment, and yield what that changes, if it is a consumer."""
        if flow.consumer is not None:
            before, lost = options_in_words(flow.consumer.options), self._drop(flow.consumer)
            automation = "removed" if flow.consumer.schedule.starts_runs else ""
            yield ConsumerChange("removed", flow.name, before, superseded=lost, automation=automation)

    def runs(self) -> Iterator[RunAtOnce]:
        """Yield the runs that the deploy starts, also those of Eager flows."""
        for each in keep_up_to_date(self._state, self._decisions, self._now):
            because = causes_in_words(each.because, names_in(self._state))
            words = because or f"with {count(len(each.events), 'update')}"
            found = self._state.consumers.find(each.consumer)
            yield RunAtOnce("" if found is None else found.name, each.target_key, words)

    def _add(self, wanted: Deployed) -> None:
        consumer = Consumer(next(self._numbers), wanted.name, wanted.id, wanted.options, deployed=self._now)
        registry.deploy(self._state, consumer)
        self._follow(None, consumer)

    def _change(self, old: Consumer, options: ConsumerOptions) -> tuple[dict[str, int], int]:
        """Change a consumer; return the events that it loses, and how many are queued under other keys."""
        state = self._state
        self._decisions += clock.settle(state, old, self._now)
        before = _queued(state, old)
        changed = registry.change(state, replace(old, deployed=self._now), options)
        after = _queued(state, old)
        self._follow(old, changed)
        lost = Counter(uri for place, (uri, _) in before.items() if place not in after)
        return dict(lost), sum(after[place] != before[place] for place in before.keys() & after.keys())

    def _drop(self, consumer: Consumer) -> dict[str, int]:
        lost = Counter(uri for uri, _ in _queued(self._state, consumer).values())
        registry.remove(self._state, consumer)
        freshness.leave(self._state.freshness, consumer.id, self._now)
        return dict(lost)

    def _follow(self, before: Consumer | None, consumer: Consumer) -> None:
        opening_hours.follow(self._state, before, consumer, self._now)
        freshness.follow(self._state.freshness, before, consumer, self._now)
        self._decisions += registry.pass_over_consumer(self._state, consumer, self._now)


def _queued(state: State, consumer: Consumer) -> dict[int, tuple[str, frozenset[str | None]]]:
    """Return the queued events of a consumer by their place, each with its asset and target keys."""
    found: dict[int, tuple[str, frozenset[str | None]]] = {}
    for key, event in state.all_queued(consumer.id):
        place = event.sequence or 0
        found[place] = (event.uri, found.get(place, ("", frozenset()))[1] | {key})
    return found


def _lost(
    state: State, known: Sequence[DeployedFlow], stay: Sequence[DeployedFlow], after: Sequence[Deployed]
) -> Iterator[LostAsset]:
    """Yield what loses its last producer, or the last consumer that runs on it."""
    declared = [each.declaration for each in after if each.declaration is not None]
    made, makes = (_tokens(state, (each.produces for each in flows)) for flows in (known, stay))
    makes |= _tokens(state, ([outlet.token for outlet in each.produces] for each in declared))
    used, uses = (_tokens(state, (each.wanted_tokens for each in flows)) for flows in (known, stay))
    uses |= _tokens(state, (each.options.wanted_tokens for each in declared))
    yield from (LostAsset(token.value, "producer") for token in sorted(made - makes))
    yield from (LostAsset(token.value, "consumer") for token in sorted(used - uses))


def _tokens(state: State, tokens: Iterable[Iterable[Token]]) -> set[Token]:
    """Return the tokens of several flows; a name counts as the asset that has it."""
    found = {token for each in tokens for token in each}
    owners = {token: state.names.owner_of(token.value) for token in found if token.kind == "name"}
    return {Token("uri", owner) if (owner := owners.get(token)) else token for token in found}
