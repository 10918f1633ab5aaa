"""Backfills of assets: what one would run, and how far each has come (contract 8.18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from sqlalchemy import bindparam, func, select

from assetflow.core.freshness.backfilling import edges_of, run_id, steps_of, targets_of, waves_of
from assetflow.core.freshness.reads import all_keys
from assetflow.core.freshness.records import Backfill, BackfillItem, StepState
from assetflow.core.grouping import grouped
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.consumers import Consumer
from assetflow.ledger.read import given, newest_first
from assetflow.ledger.read.partitions import StateTopic
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.freshness_tables import BACKFILL, BACKFILL_TARGET
from assetflow.ledger.sql.rows import BACKFILL_ITEMS, BACKFILLS, readable_name
from assetflow.ledger.sql.tables import CONSUMER, DECISION

_T = BACKFILL_TARGET.c
_BACKFILLS = select(*BACKFILLS.columns, readable_name(BACKFILL.c.uri), BACKFILL.c.begun)
_TARGETS = (
    select(*BACKFILL_ITEMS.columns, CONSUMER.c.name, CONSUMER.c.deployment_id)
    .join(CONSUMER, CONSUMER.c.id == _T.consumer)
    .where(_T.backfill == bindparam("backfill"), _T.place > bindparam("after"))
    .order_by(_T.place)
)
_PROGRESS = (
    select(_T.wave, CONSUMER.c.name, _T.state, func.count())
    .join(CONSUMER, CONSUMER.c.id == _T.consumer)
    .where(_T.backfill == bindparam("backfill"))
    .group_by(_T.wave, CONSUMER.c.name, _T.state)
    .order_by(_T.wave, CONSUMER.c.name)
)
_RUNS = select(DECISION.c.id, DECISION.c.flow_run_id, DECISION.c.run_state, DECISION.c.error).where(
    in_values(DECISION.c.id, "ids")
)


@dataclass(frozen=True)
class Planned:
    """The targets that a backfill would run, and their order.

    Attributes:
        steps: its targets, by the name of their consumer and by key.
        edges: pairs of places of which the lower one waits for the upper one.
        names: the names of the consumers, by id.
    """

    steps: Sequence[BackfillItem]
    edges: Sequence[tuple[int, int]]
    names: Mapping[int, str]

    def waves(self) -> list[dict[str, list[str | None]]]:
        """Return the keys of each consumer in each wave: those above in the waves before have to be done."""
        return [grouped((self.names[target.consumer], target.key) for target in wave) for wave in waves_of(self.steps)]

    def shown(self, uri: str, *, down: bool, most: int = 20) -> BackfillPreview:
        """Return the waves as the API shows them, with the first keys of each consumer."""
        waves = [
            [PlannedTargets(name, [key for key in keys[:most] if key is not None], len(keys)) for name, keys in each]
            for each in (wave.items() for wave in self.waves())
        ]
        return BackfillPreview(uri, down, len(self.steps), waves)


@shape
class PlannedTargets:
    """The targets of one consumer in a wave of a backfill."""

    consumer: str
    target_keys: Sequence[str]
    """The first ones; empty for a flow without partitions."""
    total_targets: int
    """How many targets of the consumer run in this wave."""


@shape
class BackfillPreview:
    """What a backfill would run."""

    uri: str
    down: bool
    total_targets: int
    waves: Sequence[Sequence[PlannedTargets]]
    """Each runs when those above it in the waves before are done."""


@shape
class WaveColumn:
    """A consumer in a wave of a backfill, with its targets by state."""

    wave: int
    """How many targets at most run one after the other before these."""
    consumer: str
    counts: Mapping[StepState, int]


BackfillState = Literal["preparing", "running", "stopped", "failed", "completed"]


@shape
class ShownBackfill:
    """A backfill of an asset."""

    number: int
    uri: str
    down: bool
    state: BackfillState
    made: datetime
    by: TextOrNull
    why: TextOrNull
    concurrency: int | None
    stopped: datetime | None
    ended: datetime | None
    total_targets: int
    counts: Mapping[StepState, int]
    """How many targets are in which state. `asked`: they run. `removed`: they were taken off, because something above
    them failed."""


@shape
class BackfillProgress(ShownBackfill):
    """A backfill of an asset, wave by wave."""

    waves: Sequence[WaveColumn]


@dataclass(frozen=True)
class BackfillRecord:
    """A backfill in the ledger.

    Attributes:
        name: what people call its asset.
        has_begun: all its targets are written, so that it runs.
    """

    backfill: Backfill
    name: str
    has_begun: bool

    @property
    def number(self) -> int:
        return self.backfill.number

    @property
    def total(self) -> int:
        """How many targets it has."""
        each = self.backfill
        return each.todo + each.asked + each.done + each.failed + each.removed

    @property
    def state(self) -> BackfillState:
        """How it is: preparing, running, stopped, failed or completed."""
        if not self.has_begun:
            return "preparing"
        if self.backfill.ended is None:
            return "stopped" if self.backfill.stopped is not None else "running"
        return "failed" if self.backfill.failed or self.backfill.removed else "completed"

    def shown(self) -> ShownBackfill:
        """Return the backfill as the API and `--json` show it."""
        each = self.backfill
        return ShownBackfill(
            number=each.number,
            uri=each.uri,
            down=each.down,
            state=self.state,
            made=each.made,
            by=each.by,
            why=each.why,
            concurrency=each.concurrency,
            stopped=each.stopped,
            ended=each.ended,
            total_targets=self.total,
            counts={state: getattr(each, state) for state in _STATES},
        )


_STATES: tuple[StepState, ...] = get_args(StepState)


@shape
class BackfillTargetRecord:
    """A target of a backfill, and its run."""

    place: int
    wave: int
    consumer: str
    target_key: str | None
    state: StepState
    waits_for: int
    """How many of the targets directly above it are not done."""
    attempt: int
    """How often it failed and was run again before."""
    decision_id: UUID
    """The id of the decision for its last attempt, also before it is made."""
    flow_run_id: UUID | None = None
    run_state: TextOrNull = ""
    error: TextOrNull = ""
    """Why it has no run."""


class BackfillReader(StateTopic):
    """Reads backfills."""

    def maker(self, uri: str) -> tuple[Consumer, Sequence[str]] | None:
        """Return the flow that makes an asset, and its known target keys; `None` if no flow does."""
        with self._states.open() as state:
            state.freshness.admit_all()
            maker = state.freshness.graph.maker(uri)
            keys = [] if maker is None else all_keys(state.freshness, maker)
            return None if maker is None else (maker.consumer, [key for key in keys if key is not None])

    def plan(self, uri: str, keys: Sequence[str] | None, *, down: bool) -> Planned:
        """Return what a backfill would run.

        Parameters:
            keys: the target keys of the maker; `None` for all known ones.
            down: whether the targets below run too.

        Raises:
            InvalidCall: nothing makes the asset, or keys are given for a flow without partitions.
        """
        with self._states.open() as state:
            book = state.freshness
            book.admit_all()
            above = targets_of(book, uri, keys, down=down)
            steps = steps_of(book, above)
            nodes = (book.graph.find(number) for number in {step.target.consumer for step in steps})
            names = {node.id: node.consumer.name for node in nodes if node is not None}
            return Planned(steps, list(edges_of(steps, above)), names)

    def all(self, *, uri: str | None = None, before: int | None = None, limit: int = 100) -> list[BackfillRecord]:
        """Return backfills, newest first. To page on, give the number of the last one as `before`.

        Parameters:
            uri: only backfills of this asset.
        """
        query = _BACKFILLS.where(*given((BACKFILL.c.uri, uri)))
        return self._backfills(newest_first(query, BACKFILL.c.number, before, limit))

    def get(self, number: int) -> BackfillRecord | None:
        """Return a backfill; `None` if no backfill has this number."""
        found = self._backfills(_BACKFILLS.where(BACKFILL.c.number == number))
        return found[0] if found else None

    def progress(self, number: int) -> list[WaveColumn]:
        """Return the consumers of a backfill, wave by wave, with the number of their targets in each state."""
        rows = self._rows(_PROGRESS, {"backfill": number})
        found = grouped(((wave, name), (state, count)) for wave, name, state, count in rows)
        none = dict.fromkeys(_STATES, 0)
        return [WaveColumn(wave, name, none | dict(counts)) for (wave, name), counts in found.items()]

    def targets(
        self, number: int, *, state: StepState | None = None, after: int = -1, limit: int = 100
    ) -> list[BackfillTargetRecord]:
        """Return the targets of a backfill with their runs, by consumer and key.

        Parameters:
            state: only those of which this became.
            after: only those after this place.
        """
        record = self.get(number)
        if record is None:
            return []
        query = _TARGETS if state is None else _TARGETS.where(_T.state == state)
        with self._connect() as connection:
            rows = connection.execute(query.limit(limit), {"backfill": number, "after": after}).all()
            found = [(BACKFILL_ITEMS.read(step), name, deployment) for *step, name, deployment in rows]
            ids = [run_id(record.backfill, deployment, step.target.key, step.attempt) for step, _, deployment in found]
            runs = {each: run for each, *run in connection.execute(_RUNS, {"ids": ids})}
        return [
            BackfillTargetRecord(
                *(step.place, step.wave, name, step.target.key, step.state, step.waits, step.attempt, each),
                *runs.get(each, ()),
            )
            for (step, name, _), each in zip(found, ids, strict=True)
        ]

    def _backfills(self, query: Any) -> list[BackfillRecord]:
        rows = self._rows(query)
        return [BackfillRecord(BACKFILLS.read(row), row[-2], row[-1] is not None) for row in rows]
