"""The commands on a ledger of the test's own, and a harness on the server that all tests share."""

from tests.cli.conftest import call, home, ledger, new_ledger
from tests.examples.conftest import h

__all__ = ["call", "h", "home", "ledger", "new_ledger"]
