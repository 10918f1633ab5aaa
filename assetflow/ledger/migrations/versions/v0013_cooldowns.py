"""When each queue with a cooldown was last decided on, beside what else the clock remembers of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

MOMENT = sa.String(32)

# The last decision on each queue of a consumer that may have a cooldown.
_LAST = """
    SELECT max(number) FROM decision
    WHERE kind = 'asset' AND consumer IN (SELECT id FROM consumer WHERE declaration LIKE '%cooldown%')
    GROUP BY consumer, target_key
"""
_ADD_QUEUES = f"""
    INSERT INTO queue_clock (consumer, target_key, overdue, told, deferred)
    SELECT consumer, target_key, false, 0, false FROM decision
    WHERE number IN ({_LAST}) AND NOT EXISTS (
        SELECT 1 FROM queue_clock
        WHERE queue_clock.consumer = decision.consumer AND queue_clock.target_key = decision.target_key
    )
"""
_SET = f"""
    UPDATE queue_clock SET decided = decision.made, started = coalesce(decision.scheduled, decision.decided)
    FROM decision
    WHERE decision.consumer = queue_clock.consumer AND decision.target_key = queue_clock.target_key
        AND decision.number IN ({_LAST})
"""


def upgrade() -> None:
    """Add the columns, fill them from the decisions, and drop the index that found the last decision on a queue."""
    op.add_column("queue_clock", sa.Column("decided", MOMENT))
    op.add_column("queue_clock", sa.Column("started", MOMENT))
    op.execute(_ADD_QUEUES)
    op.execute(_SET)
    op.drop_index("decision_consumer_target_key_number", "decision")
