"""Times as a person types them."""

from __future__ import annotations

from datetime import UTC, datetime

from assetflow.errors import InvalidSettings


def since_option(text: str | None) -> datetime | None:
    """The time that `--since` names, in UTC if it has no zone; none if it was not given.

    Raises:
        InvalidSettings: it is no time.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidSettings(
            f"{text!r} is no time", where="--since", fix="Write 2026-11-20 or 2026-11-20T08:00:00Z"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
