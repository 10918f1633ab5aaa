"""Times and people on the command line, and what is meant by them."""

from __future__ import annotations

import getpass
from contextlib import suppress
from datetime import UTC, datetime


def in_utc(moment: datetime) -> datetime:
    """A time as it was typed; without a zone it is UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def this_user() -> str:
    """Who runs this process; empty where the system cannot say."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
