"""Schedules as Prefect's own triggers.

One pure function over the postfix form of a condition. It keeps two kinds of values while it goes up the tree: an OR of
leaves and ANDs, and an AND of ORs. Nested gates of one kind melt into one, so the triggers are as deep as the condition
alternates between AND and OR, and no deeper. A gate without members needs no case of its own: an AND of nothing is
true, an OR of nothing is false (4.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from prefect.events.schemas.automations import CompoundTrigger, EventTrigger, Posture, TriggerTypes
from prefect.events.schemas.deployment_triggers import (
    DeploymentCompoundTrigger,
    DeploymentEventTrigger,
    DeploymentTriggerTypes,
)
from prefect.events.schemas.events import ResourceSpecification

from assetflow.core.conditions import Condition, Gate, Leaf, Token, fold_condition
from assetflow.core.schedules import to_schedule
from assetflow.errors import InvalidSchedule
from assetflow.prefect_io.names import ALIAS_ROLE, ASSET_UPDATED, MATERIALIZATION_SUCCEEDED, alias_resource_id
from assetflow.prefect_io.wording import short_sentence

PrefectTrigger: TypeAlias = "EventTrigger | CompoundTrigger"

UPDATES = frozenset({ASSET_UPDATED, MATERIALIZATION_SUCCEEDED})
"""The Prefect events that are updates of an asset (2.6)."""

MAX_DEPTH = 8
"""Deeper triggers block Prefect's server, which takes twice as long with each level (14: a second, 20: a minute)."""


def deployment_triggers(schedule: object) -> list[DeploymentTriggerTypes | TriggerTypes]:
    """A schedule as triggers for `flow.deploy(triggers=...)`, `flow.serve(triggers=...)` and `flow.to_deployment`.

    Prefect decides then, not assetflow: it does so rightly for a single asset and for `a | b`. Other conditions show
    what Prefect makes of them, and run too often or too rarely; give those to `@flow(schedule=...)`.

    Parameters:
        schedule: what `@flow(schedule=...)` takes. A time table is left out: Prefect has schedules for it.

    Returns:
        One trigger, named in words; none if the schedule has no assets, or can never be satisfied.

    Raises:
        InvalidSchedule: it is no schedule, or alternates between AND and OR more often than Prefect can store.
    """
    made = to_schedule(schedule)
    if made.condition is None:
        return []
    return [_named(trigger, short_sentence(made)) for trigger in condition_triggers(made.condition, UPDATES)]


def _named(trigger: PrefectTrigger, name: str) -> DeploymentEventTrigger | DeploymentCompoundTrigger:
    """The trigger as deployments want it: they read its name, which plain triggers lack."""
    kind = DeploymentCompoundTrigger if isinstance(trigger, CompoundTrigger) else DeploymentEventTrigger
    return kind(name=name, **dict(trigger))


def condition_triggers(condition: Condition, events: Collection[str]) -> list[PrefectTrigger]:
    """A condition as one trigger on events of these names; none if no event can satisfy it.

    Raises:
        InvalidSchedule: the triggers would be nested deeper than Prefect can store.
    """
    compiler = _Compiler(frozenset(events))
    root = fold_condition(condition, compiler.leaf, compiler.gate)
    if root == _TRUE:
        # True without any update of its own: any queued event makes the decision.
        root = _Or(tuple(dict.fromkeys(leaf.token for leaf in condition.leaves)))
    if root == _FALSE:
        return []
    if root.depth > MAX_DEPTH:
        raise InvalidSchedule(
            f"the condition alternates {root.depth} times between AND and OR, Prefect's triggers can do {MAX_DEPTH}",
            fix="Write it with fewer brackets",
        )
    return [compiler.trigger(root)]


def escaped(text: str) -> str:
    """A text that Prefect matches literally: its label patterns are those of `fnmatch`, `!` in front negates (1.8)."""
    literal = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)
    # `[!]` would be read as a negated set, and a set needs a second member: one that no URI can hold.
    return f"[¡!]{literal[1:]}" if literal.startswith("!") else literal


def event_trigger(
    events: Iterable[str],
    match: dict[str, str | list[str]] | None = None,
    related: dict[str, str | list[str]] | None = None,
) -> EventTrigger:
    """A trigger on each single event of these names, with every field that Prefect's API wants to be told."""
    return EventTrigger(
        type="event",
        expect=set(events),
        after=set(),
        for_each=set(),
        match=ResourceSpecification(match or {}),
        match_related=ResourceSpecification(related or {}),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )


def compound_trigger(require: str, triggers: Iterable[PrefectTrigger]) -> CompoundTrigger:
    """An AND (`all`) or OR (`any`) of triggers, without a limit of time."""
    return CompoundTrigger(
        type="compound", require="all" if require == "all" else "any", triggers=[*triggers], within=None
    )


@dataclass(frozen=True, eq=False)
class _Gates:
    """Compiled members of an OR that are no leaves; compared by identity, since they may be deep."""

    triggers: tuple[PrefectTrigger, ...] = ()


_NO_GATES = _Gates()


@dataclass(frozen=True)
class _Or:
    tokens: tuple[Token, ...]
    gates: _Gates = _NO_GATES
    depth: int = 1


@dataclass(frozen=True)
class _And:
    members: tuple[_Or, ...]
    depth: int = 1


_TRUE = _And(())
_FALSE = _Or(())


@dataclass(frozen=True)
class _Compiler:
    events: frozenset[str]

    def leaf(self, leaf: Leaf) -> _Or | _And:
        return _Or((leaf.token,))

    def gate(self, gate: Gate, members: list[_Or | _And]) -> _Or | _And:
        return self._all(members) if gate.kind == "all" else self._any(members)

    def trigger(self, value: _Or | _And) -> PrefectTrigger:
        triggers = (
            [self.trigger(member) for member in value.members]
            if isinstance(value, _And)
            else [*self._leaves(value.tokens), *value.gates.triggers]
        )
        return triggers[0] if len(triggers) == 1 else compound_trigger(_kind(value), triggers)

    def _all(self, members: list[_Or | _And]) -> _Or | _And:
        if _FALSE in members:
            return _FALSE
        parts: dict[_Or, None] = {}
        for member in members:
            parts.update(dict.fromkeys(member.members if isinstance(member, _And) else (member,)))
        if len(parts) == 1:
            return next(iter(parts))
        return _And(tuple(parts), 1 + max((part.depth for part in parts), default=0))

    def _any(self, members: list[_Or | _And]) -> _Or | _And:
        if _TRUE in members:
            return _TRUE
        members = [member for member in members if member != _FALSE]
        if len(members) == 1:
            return members[0]
        tokens: dict[Token, None] = {}
        gates: list[PrefectTrigger] = []
        for member in members:
            if isinstance(member, _Or):
                tokens.update(dict.fromkeys(member.tokens))
                gates.extend(member.gates.triggers)
            else:
                gates.append(self.trigger(member))
        if not gates:
            return _Or(tuple(tokens))
        return _Or(tuple(tokens), _Gates(tuple(gates)), 1 + max(member.depth for member in members))

    def _leaves(self, tokens: Iterable[Token]) -> list[PrefectTrigger]:
        """One trigger for all assets, one for all references by name, one for all aliases: a list is an OR."""
        found: dict[str, list[str]] = {}
        for token in tokens:
            found.setdefault(token.kind, []).append(token.value)
        triggers: list[PrefectTrigger] = []
        if uris := found.get("uri"):
            triggers.append(event_trigger(self.events, {"prefect.resource.id": [*map(escaped, uris)]}))
        if names := found.get("name"):
            triggers.append(event_trigger(self.events, {"prefect.resource.name": [*map(escaped, names)]}))
        if aliases := found.get("alias"):
            ids: list[str] = [escaped(alias_resource_id(alias)) for alias in aliases]
            related: dict[str, str | list[str]] = {"prefect.resource.role": ALIAS_ROLE, "prefect.resource.id": ids}
            triggers.append(event_trigger(self.events, related=related))
        return triggers


def _kind(value: _Or | _And) -> str:
    return "all" if isinstance(value, _And) else "any"
