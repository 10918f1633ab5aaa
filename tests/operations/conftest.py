"""The command line, the API and the pages, all on one ledger."""

from tests.cli.conftest import call, home, ledger
from tests.web.conftest import make_site, site

__all__ = ["call", "home", "ledger", "make_site", "site"]
