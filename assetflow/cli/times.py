"""Read the times that users type on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from assetflow.errors import InvalidSettings


def in_utc(time: datetime) -> datetime:
    """Return the time in UTC. A time without a zone is taken as UTC."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def since_option(text: str | None) -> datetime | None:
    """Return the time that `--since` names, taken as UTC if it has no zone, or `None` if the option was not given.

    Raises:
        InvalidSettings: the text is not a time.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidSettings(
            f"{text!r} is not a time", where="--since", fix="Write 2026-11-20 or 2026-11-20T08:00:00Z"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
