"""A program that knows one more version of the tables than this one: upgrades are tested with it."""

import shutil
from pathlib import Path

import pytest

from assetflow.ledger import ledger as upkeep
from assetflow.ledger import schema
from assetflow.ledger.migrations import VERSION

NEXT = f"{int(VERSION) + 1:04}"

MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{VERSION}"


def upgrade():
    op.create_table("later", sa.Column("uri", sa.String(), primary_key=True))
    op.add_column("later", sa.Column("seen", sa.String(32)))
    op.create_index("later_seen", "later", ["seen"])
    op.execute("INSERT INTO later (uri) SELECT uri FROM asset")
    op.execute("UPDATE later SET seen = '2026'")
'''


def write_migrations(folder: Path) -> None:
    shutil.copytree(schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"v{NEXT}_later.py").write_text(MIGRATION)


def become(patch: pytest.MonkeyPatch, migrations: Path) -> None:
    """Let this process be that program, with its migrations."""
    patch.setattr(schema, "MIGRATIONS", migrations)
    for module in (schema, upkeep):
        patch.setattr(module, "VERSION", NEXT)
