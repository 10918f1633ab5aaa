"""`assetflow version`: show the versions of assetflow and of what it runs on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from rich.text import Text

from assetflow.cli.output import facts_table, tell
from assetflow.cli.values import AsJson
from assetflow.ledger.migrations import VERSION


def version(*, json: AsJson = False) -> None:
    """Show the versions of assetflow and of what it runs on."""
    found = {
        "assetflow": _installed("assetflow"),
        "prefect": _installed("prefect"),
        "python": platform.python_version(),
        "pyspark": _installed("pyspark"),
        "ledger_schema": VERSION,
    }
    facts = ((name.replace("_", " "), Text(number or "not installed")) for name, number in found.items())
    tell(found, facts_table(facts), json=json)


def _installed(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None
