"""The commands on a ledger of the test's own."""

from tests.cli.conftest import call, home, ledger

__all__ = ["call", "home", "ledger"]
