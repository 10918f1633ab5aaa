from tests.ledger.conftest import new_sqlite, sqlite_ledger, template

__all__ = ["new_sqlite", "sqlite_ledger", "template"]
