"""Partition keys in the order of their code points, as on SQLite, whatever the locale of the Postgres database is.

The greatest keys decide what runs (contract 8.3, 8.8, 8.18), and a locale may put "a" before "B".
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

ORDERED = {
    "item": ("partition_key",),
    "reading": ("target_key", "source_key"),
    "target_key": ("target_key",),
    "target": ("target_key",),
    "pending": ("target_key", "source_key"),
}


def upgrade() -> None:
    """Change the collation of the columns, which builds their indexes anew."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, columns in ORDERED.items():
        for column in columns:
            op.alter_column(table, column, type_=sa.String(collation="C"))
