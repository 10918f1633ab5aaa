"""Assets that an operator hid."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.String(32)


def upgrade() -> None:
    """Add the table, which is empty until an asset is hidden."""
    op.create_table(
        "hidden_asset",
        sa.Column("uri", sa.String(), sa.ForeignKey("asset.uri"), primary_key=True),
        sa.Column("sequence", NUMBER, nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("hidden_by", sa.String(), nullable=False),
    )
