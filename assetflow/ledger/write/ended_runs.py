"""Store the final states of flow runs, and which failures were reported to Prefect. Contract 4.8."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, and_, delete, exists, or_, select, update

from assetflow.core.graph.lineage import flows_after
from assetflow.core.rules.ended_runs import EndedRun, FailedForGood
from assetflow.ledger.read.ended_runs import ENDED_RUNS, not_made
from assetflow.ledger.read.graph import LineageReader
from assetflow.ledger.sql.bulk import insert_rows
from assetflow.ledger.sql.freshness_tables import KEPT_RUN, TARGET
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import CONSUMER, DECISION, EDGE, ENDED_RUN
from assetflow.ledger.write.store import Operations

_COLUMNS = [each for each in ENDED_RUNS.columns if each.name != "number"]
_ADD = insert_rows(*_COLUMNS, ENDED_RUN.c.stored)
_KNOWN = select(ENDED_RUN.c.flow_run_id, ENDED_RUN.c.state_at).where(in_values(ENDED_RUN.c.flow_run_id, "runs"))
_DROP = delete(ENDED_RUN).where(in_values(ENDED_RUN.c.flow_run_id, "runs"))
# A deployment that is a consumer and declares outlets has both names, which are one.
_FLOWS = (
    select(CONSUMER.c.deployment_id, CONSUMER.c.name)
    .where(CONSUMER.c.removed_at.is_(None), in_values(CONSUMER.c.deployment_id, "deployments"))
    .union(
        select(EDGE.c.deployment_id, EDGE.c.name).where(
            EDGE.c.direction == "produces", in_values(EDGE.c.deployment_id, "deployments")
        )
    )
)
_OF_NUMBERS = update(ENDED_RUN).where(in_values(ENDED_RUN.c.number, "numbers"))
_GOES_ON = or_(
    exists().where(DECISION.c.id == ENDED_RUN.c.decision, DECISION.c.ended.is_(None)),
    exists().where(KEPT_RUN.c.id == ENDED_RUN.c.flow_run_id, KEPT_RUN.c.ended.is_(None)),
)
_RETRY = (
    select(TARGET.c.retry_at)
    .join(CONSUMER, CONSUMER.c.id == TARGET.c.consumer)
    .where(CONSUMER.c.deployment_id == ENDED_RUN.c.deployment_id, CONSUMER.c.removed_at.is_(None))
    .where(and_(TARGET.c.target_key == ENDED_RUN.c.target_key, TARGET.c.retry_at > ENDED_RUN.c.ended))
    .exists()
)
_TO_TELL = (
    select(*ENDED_RUNS.columns, _RETRY, ENDED_RUN.c.posted)
    .where(ENDED_RUN.c.stored.is_(None), ~_GOES_ON)
    .order_by(ENDED_RUN.c.number)
)


class EndedRunWriter(Operations):
    """Writes final states."""

    def add(self, runs: Sequence[EndedRun], now: datetime) -> int:
        """Store the final states of runs of consumers and makers, in their order, and return how many are new.

        The newest state of a run counts. Runs of other deployments are left out.

        Parameters:
            runs: without their numbers, and without the names of their flows.
        """
        given = {"deployments": list({each.deployment_id for each in runs})}
        with self._store.writes() as connection:
            flows: Mapping[UUID, str] = dict(connection.execute(_FLOWS, given).tuples().all())
            wanted = {each.flow_run_id: each for each in runs if each.deployment_id in flows}
            known: Mapping[UUID, datetime] = dict(connection.execute(_KNOWN, {"runs": list(wanted)}).tuples().all())
            new = [each for run, each in wanted.items() if run not in known or known[run] < _state_at(each)]
            connection.execute(_DROP, {"runs": [each.flow_run_id for each in new]})
            _ADD.run(connection, [_row(each, flows[each.deployment_id], now) for each in new])
        return len(new)

    def go_on(self, states: Mapping[UUID, datetime]) -> None:
        """Forget the final states of runs that go on again, because somebody retried them.

        Parameters:
            states: the time of the newest state of each run, by Prefect's clock.
        """
        with self._store.reads() as connection:
            again = _older(connection, states)
        if again:
            with self._store.writes() as connection:
                connection.execute(_DROP, {"runs": _older(connection, states)})

    def to_tell(self, limit: int) -> list[FailedForGood]:
        """Return the runs that failed for good and that Prefect's log was not seen to have, oldest first.

        A run whose end has led to no pass yet is left out: a retry of 8.7 may follow it.
        """
        with self._store.reads() as connection:
            rows = connection.execute(_TO_TELL.limit(limit)).all()
        repeated = [row[0] for row in rows if row[-2]]
        if repeated:
            self._set(repeated, repeated=True, stored=ENDED_RUN.c.ended)
        edges_of = LineageReader(self._store.reads).edges_of
        runs = [(ENDED_RUNS.read(row), row[-1]) for row in rows if not row[-2]]
        with self._store.reads() as connection:
            return [
                FailedForGood(run, flows_after(edges_of, [run.flow])[0], posted, not_made(connection, run))
                for run, posted in runs
            ]

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        """Store that the events of these failures are sent to Prefect now."""
        self._set(numbers, posted=now)

    def stored(self, numbers: Collection[int], now: datetime) -> None:
        """Store that Prefect's log has the events of these failures."""
        self._set(numbers, stored=now)

    def _set(self, numbers: Collection[int], **values: object) -> None:
        with self._store.writes() as connection:
            connection.execute(_OF_NUMBERS.values(values), {"numbers": numbers})


def _row(run: EndedRun, flow: str, now: datetime) -> tuple[object, ...]:
    """Return a run as a row of the table. Of one that did not fail, there is nothing to tell."""
    values = {name: getattr(run, name) for name in (each.name for each in _COLUMNS)} | {"flow": flow}
    return (*values.values(), None if run.has_failed else now)


def _older(connection: Connection, states: Mapping[UUID, datetime]) -> list[UUID]:
    """Return those of the runs whose stored final state is older than their newest state."""
    return [run for run, at in connection.execute(_KNOWN, {"runs": list(states)}) if at < states[run]]


def _state_at(run: EndedRun) -> datetime:
    assert run.state_at is not None, "what is read from Prefect has the time of its state"
    return run.state_at
