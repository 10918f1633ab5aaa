"""What a deploy would change: the deploy, in a state that nobody writes, and its changes. Contract 11.4, 11.5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count as numbers
from typing import Literal

from assetflow.core.explain.facts import names_in
from assetflow.core.freshness import deploying as freshness
from assetflow.core.grouping import grouped
from assetflow.core.rules import clock, opening_hours, registry
from assetflow.core.rules.keeping import keep_up_to_date
from assetflow.core.rules.state import State
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import at, count, some
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import AssetflowError

ChangeKind = Literal["added", "changed", "removed", "renamed", "refused"]


@shape
class ConsumerChange:
    """What a deploy would do to one consumer."""

    kind: ChangeKind
    consumer: str
    """`flow/deployment`."""
    before: str | None = None
    """Its schedule and options in words; null if it has none."""
    after: str | None = None
    was: TextOrNull = ""
    """Its name before, if it is renamed."""
    refused: TextOrNull = ""
    """Why the deploy would be refused; then the schedule before stays (4.4)."""
    fix: TextOrNull = ""
    superseded: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many queued events of each asset it would lose (4.4)."""
    mapped_anew: int = 0
    """How many queued events would be queued under other keys (5.6)."""
    automation: TextOrNull = ""
    """Whether its automation in Prefect would be `made` or `removed`."""
    begins_eager: bool = False
    """It is new and Eager, so it runs as soon as what it reads exists (8.5)."""


@shape
class RunAtOnce:
    """A run that the deploy itself would start."""

    consumer: str
    target_key: str | None
    words: str
    """Why, as a clause: "with 2 updates", "its code has another version"."""


@shape
class LostAsset:
    """An asset or alias that no flow would update any more, or on which none would run any more."""

    asset: str
    lost: Literal["producer", "consumer"]


@shape
class RunDiffers:
    """The first run in which two versions of a consumer differ."""

    at: datetime
    target_key: str | None
    what: Literal["gone", "new", "other"]
    """The run would be gone, it would be new, or it would take other updates."""
    words: str
    """Why, as a clause."""


@shape
class Replayed:
    """A consumer that differs, over what was recorded."""

    consumer: str
    since: datetime
    """From when on."""
    before: int = 0
    """How many runs it would have had as it is, and as it would be."""
    after: int = 0
    missed_before: int = 0
    """How many deadlines it would have missed."""
    missed_after: int = 0
    first: RunDiffers | None = None
    """The first run that differs; null if none does."""
    note: TextOrNull = ""
    """Why it is not replayed."""
    after_deploy: bool = False
    """It begins with its last deploy, which came later than the beginning that was asked for."""


@shape
class Comparison:
    """What a deploy would change."""

    consumers: Sequence[ConsumerChange] = ()
    runs: Sequence[RunAtOnce] = ()
    assets: Sequence[LostAsset] = ()
    unchanged: int = 0
    """How many consumers stay as they are."""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """What could not be looked at: a file, or a file with its flow, and why."""
    replayed: Sequence[Replayed] | None = None
    """The consumers that differ, over what was recorded; null without a replay."""

    @property
    def changes_something(self) -> bool:
        return bool(self.consumers or self.runs or self.assets)

    @property
    def loses_events(self) -> bool:
        """True if queued events would be lost."""
        return any(each.superseded for each in self.consumers)

    @property
    def has_fewer_runs(self) -> bool:
        """True if a consumer would have had fewer runs over what was recorded."""
        return any(each.after < each.before for each in self.replayed or ())


def options_in_words(options: ConsumerOptions) -> str:
    """Return all that says how a consumer runs, so that two that differ have different words."""
    parts = [options.describe()]
    if (parting := options.schedule.partitioning) is not None:
        parts.append(f"by {parting.default.describe()}")
        parts += [f"{target.label} by {mapper.describe()}" for target, mapper in parting.mappers]
    parts += ["coalesce"] if options.coalesce else []
    parts += ["while_paused keep"] if options.while_paused == "keep" else []
    return "; ".join(parts)


# What every replay has to say about itself.
LIMITS = "A run that would be new makes no updates here, and one that would be gone still has its own."
# The cursor of the ledger that holds the comparison that the page shows.
CURSOR = "diff"

Sign = ChangeKind | Literal["unread", "runs", "lost", "replayed"]
_HOW = {"gone": "would not have run", "new": "would have run", "other": "would have run with other updates"}


@shape
class Line:
    """What a stage says of one consumer, asset or file.

    Attributes:
        words: the sentence whose subject is `name`.
        before, after: what stands side by side, if something does.
        notes: what follows, in sentences.
    """

    sign: Sign
    name: str
    words: str
    before: str | None = None
    after: str | None = None
    notes: Sequence[str] = ()


@shape
class Stage:
    """Some lines with a heading, and a sentence below them; without a heading, the sentence alone."""

    title: str
    lines: Sequence[Line]
    note: str = ""


@shape
class ShownDiff:
    """A comparison that was kept for the page.

    Attributes:
        folder: the folder of the project.
        by: who made it.
    """

    made: datetime
    folder: str
    by: str
    stages: Sequence[Stage]


def stages_of(found: Comparison) -> Iterator[Stage]:
    """Yield the stages of a comparison; those about nothing are left out."""
    runs = ((_keyed(each.consumer, each.target_key), f"would run at once: {each.words}.") for each in found.runs)
    lost = ((each.asset, f"loses its last {each.lost}.") for each in found.assets)
    replayed = ((each.consumer, replay_in_words(each)) for each in found.replayed or ())
    given = (
        Stage("Cannot be looked at", [Line("unread", *each) for each in found.problems.items()]),
        Stage("Consumers", list(map(_change, found.consumers))),
        Stage("Runs that the deploy starts", [Line("runs", *each) for each in runs]),
        Stage("Assets", [Line("lost", *each) for each in lost]),
        Stage("What was recorded, with both versions", [Line("replayed", *each) for each in replayed], LIMITS),
    )
    yield from (each for each in given if each.lines)
    if not found.changes_something:
        yield Stage("", (), "Nothing would change.")
    elif found.unchanged:
        yield Stage("", (), f"{count(found.unchanged, 'consumer')} would not change.")


def _keyed(name: str, key: str | None) -> str:
    return name if key is None else f"{name} [{key}]"


def _change(change: ConsumerChange) -> Line:
    name = f"{change.consumer} (was {change.was})" if change.was else change.consumer
    same = change.before == change.after
    return Line(change.kind, name, change.kind, None if same else change.before, change.after, list(_notes(change)))


def _notes(change: ConsumerChange) -> Iterator[str]:
    """Yield what follows for its queue and its automation."""
    if change.refused:
        yield ". ".join(filter(None, (f"The deploy would be refused: {change.refused}", change.fix.rstrip(".")))) + "."
    if change.was:
        yield f"{change.was} runs beside it until its deployment is deleted."
    if change.superseded:
        of = some([f"{number} of {uri}" for uri, number in change.superseded.items()])
        yield f"{count(sum(change.superseded.values()), 'queued event')} would be lost: {of}."
    if change.mapped_anew:
        yield f"{count(change.mapped_anew, 'queued event')} would be queued under other keys."
    if change.begins_eager:
        yield "It would run at once if what it reads exists."
    if change.automation:
        yield f"Its automation in Prefect would be {change.automation}."


def replay_in_words(replayed: Replayed) -> str:
    """Return the numbers and the first difference, in a sentence."""
    if replayed.note:
        return f"{replayed.note}."
    same = replayed.before == replayed.after
    words = count(replayed.after, "run") + (", as before" if same else f" instead of {replayed.before}")
    words += f" (since its last deploy at {at(replayed.since)})" if replayed.after_deploy else ""
    if replayed.missed_before or replayed.missed_after:
        words += f", {count(replayed.missed_after, 'deadline')} missed instead of {replayed.missed_before}"
    if (first := replayed.first) is None:
        return f"{words}{'; no run differs' if same else ''}."
    why = f": {first.words}" if first.words else ""
    return f"{words}; at {at(first.at)} {_keyed('it', first.target_key)} {_HOW[first.what]}{why}."


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
    keys = grouped((event, key) for key, event in state.all_queued(consumer.id))
    return {event.sequence or 0: (event.uri, frozenset(found)) for event, found in keys.items()}


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
