"""The timers of consumers that have a time table (6.1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from assetflow.core.timers import Timer
from assetflow.core.timetables import timetable_from_json
from assetflow.ledger.among import among
from assetflow.ledger.bulk import upsert_rows
from assetflow.ledger.records import ConsumerRecord, TimerRecord
from assetflow.ledger.roster import CONSUMER_COLUMNS, consumer_from_row
from assetflow.ledger.tables import CONSUMER, TIMER

_KEEP = upsert_rows(
    (TIMER.c.consumer,), (TIMER.c.timetable, TIMER.c.reached, TIMER.c.paused, TIMER.c.held, TIMER.c.inherited)
)
_MORE = (CONSUMER.c.flow_id, CONSUMER.c.automation_id, CONSUMER.c.since, CONSUMER.c.removed_at)
# The text of a declaration says so when there is a time table; most consumers have none and need not be decoded.
_WITH_TIMETABLE = CONSUMER.c.declaration.contains('"timetable":', autoescape=True)


def with_times(connection: Connection) -> list[ConsumerRecord]:
    """The consumers that the clock starts, by id."""
    query = select(*CONSUMER_COLUMNS, *_MORE).where(_WITH_TIMETABLE, CONSUMER.c.removed_at.is_(None))
    found = [
        ConsumerRecord(consumer_from_row(row), row[6], row[3], *row[7:])
        for row in connection.execute(query.order_by(CONSUMER.c.id))
    ]
    return [each for each in found if each.consumer.schedule.has_times]


def kept(connection: Connection) -> list[TimerRecord]:
    """All timers, of removed consumers too."""
    columns = (TIMER.c.timetable, TIMER.c.reached, TIMER.c.paused, TIMER.c.held, TIMER.c.inherited)
    query = select(TIMER.c.consumer, CONSUMER.c.name, CONSUMER.c.deployment_id, *columns).join(CONSUMER)
    return [
        TimerRecord(consumer, name, deployment_id, Timer(timetable_from_json(times), *rest), inherited)
        for consumer, name, deployment_id, times, *rest, inherited in connection.execute(query).all()
    ]


def keep(connection: Connection, timers: Sequence[TimerRecord]) -> None:
    """See `Writer.keep_timers`."""
    rows = [
        (
            each.consumer,
            each.timer.timetable.as_json(),
            each.timer.after,
            each.timer.paused,
            each.timer.held,
            each.inherited,
        )
        for each in timers
    ]
    _KEEP.run(connection, rows)


def drop(connection: Connection, consumers: Sequence[int]) -> None:
    """See `Writer.drop_timers`."""
    connection.execute(delete(TIMER).where(among(TIMER.c.consumer, "numbers")), {"numbers": consumers})
