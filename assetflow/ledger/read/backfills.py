"""Backfills of assets: what one would run, and how far each has come (contract 8.18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select

from assetflow.core.freshness.backfilling import edges_of, run_id, steps_of, targets_of, waves_of
from assetflow.core.freshness.reads import all_keys
from assetflow.core.freshness.records import Backfill, BackfillItem, StepState
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.words import iso
from assetflow.ledger.read.states import States
from assetflow.ledger.read.topic import Topic, given, newest_first
from assetflow.ledger.sql.freshness_tables import BACKFILL, BACKFILL_TARGET
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import BACKFILL_ITEMS, BACKFILLS
from assetflow.ledger.sql.tables import CONSUMER, DECISION

_T = BACKFILL_TARGET.c
_BACKFILLS = select(*BACKFILLS.columns, BACKFILL.c.begun)
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
        found: list[dict[str, list[str | None]]] = []
        for wave in waves_of(self.steps):
            keys: dict[str, list[str | None]] = {}
            for target in wave:
                keys.setdefault(self.names[target.consumer], []).append(target.key)
            found.append(keys)
        return found

    def waves_as_json(self, most: int = 20) -> list[object]:
        """Return the waves as JSON, with the first keys of each consumer."""
        return [
            [
                {
                    "consumer": name,
                    "total_targets": len(keys),
                    "target_keys": [key for key in keys[:most] if key is not None],
                }
                for name, keys in wave.items()
            ]
            for wave in self.waves()
        ]


@dataclass(frozen=True)
class BackfillRecord:
    """A backfill in the ledger.

    Attributes:
        has_begun: all its targets are written, so that it runs.
    """

    backfill: Backfill
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
    def state(self) -> str:
        """How it is: preparing, running, stopped, failed or completed."""
        if not self.has_begun:
            return "preparing"
        if self.backfill.ended is None:
            return "stopped" if self.backfill.stopped is not None else "running"
        return "failed" if self.backfill.failed or self.backfill.removed else "completed"

    def as_json(self) -> dict[str, object]:
        """Return the backfill as JSON, with times in ISO 8601."""
        each = self.backfill
        return {
            "number": each.number,
            "uri": each.uri,
            "down": each.down,
            "state": self.state,
            "made": iso(each.made),
            "by": each.by or None,
            "why": each.why or None,
            "concurrency": each.concurrency,
            "stopped": None if each.stopped is None else iso(each.stopped),
            "ended": None if each.ended is None else iso(each.ended),
            "total_targets": self.total,
            "counts": {
                "todo": each.todo,
                "asked": each.asked,
                "done": each.done,
                "failed": each.failed,
                "removed": each.removed,
            },
        }


@dataclass(frozen=True)
class WaveColumn:
    """A consumer in a wave of a backfill, with its targets by state."""

    wave: int
    consumer: str
    counts: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        return {
            "wave": self.wave,
            "consumer": self.consumer,
            "counts": {state: self.counts.get(state, 0) for state in ("todo", "asked", "done", "failed", "removed")},
        }


@dataclass(frozen=True)
class BackfillTargetRecord:
    """A target of a backfill, and its run.

    Attributes:
        decision: the id of the decision for its last attempt, also before it is made.
        flow_run: its run; `None` before it is started.
        error: why it has no run, or "".
    """

    step: BackfillItem
    consumer: str
    decision: UUID
    flow_run: UUID | None = None
    run_state: str = ""
    error: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the target as JSON."""
        return {
            "place": self.step.place,
            "wave": self.step.wave,
            "consumer": self.consumer,
            "target_key": self.step.target.key,
            "state": self.step.state,
            "waits_for": self.step.waits,
            "attempt": self.step.attempt,
            "decision_id": str(self.decision),
            "flow_run_id": None if self.flow_run is None else str(self.flow_run),
            "run_state": self.run_state or None,
            "error": self.error or None,
        }


class BackfillReader(Topic):
    """Reads backfills."""

    def __init__(self, states: States) -> None:
        super().__init__(states.connect)
        self._states = states

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
        found: dict[tuple[int, str], dict[str, int]] = {}
        for wave, name, state, count in self._rows(_PROGRESS, {"backfill": number}):
            found.setdefault((wave, name), {})[state] = count
        return [WaveColumn(wave, name, counts) for (wave, name), counts in found.items()]

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
            BackfillTargetRecord(step, name, each, *runs.get(each, ()))
            for (step, name, _), each in zip(found, ids, strict=True)
        ]

    def _backfills(self, query: Any) -> list[BackfillRecord]:
        rows = self._rows(query)
        return [BackfillRecord(BACKFILLS.read(row), row[-1] is not None) for row in rows]
