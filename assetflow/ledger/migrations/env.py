"""Run the migrations on the connection, and in the transaction, that alembic is given."""

from alembic import context

from assetflow.ledger.schema import VERSION_TABLE
from assetflow.ledger.sql.freshness_tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
    # SQLite cannot alter a table; alembic then copies it.
    render_as_batch=True,
)
context.run_migrations()
