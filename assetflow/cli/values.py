"""The types of command line options: whole numbers, ports, durations, events and decisions.

They replace the converters of Cyclopts, which rounds 1.5 to 2 and does not say how a duration is written.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Annotated, cast
from uuid import UUID

from cyclopts import CoercionError, Parameter, Token, convert
from cyclopts.validators import Number

from assetflow.core.json_data import LARGEST_INTEGER
from assetflow.core.partitions.ranges import read_periods
from assetflow.core.values.words import IdStart
from assetflow.errors import InvalidCall, InvalidSettings

_AGE = re.compile(r"(\d+)([smhdw])")
_HOUR = re.compile(r"\d\d:\d\d")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def in_utc(moment: datetime) -> datetime:
    """Return the time in UTC. A time without a zone is taken as UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def since_option(text: str | None, option: str = "--since") -> datetime | None:
    """Return the time that an option names, taken as UTC if it has no zone, or `None` if the option was not given.

    Parameters:
        text: a time; how long ago it was, as `90m`, `2h`, `3d`; or an hour, as `02:00`, for the last time it was that.

    Raises:
        InvalidSettings: the text is not a time.
    """
    if text is None:
        return None
    now = datetime.now(UTC)
    with suppress(ValueError, OverflowError):
        if _HOUR.fullmatch(text):
            today = datetime.combine(now, time.fromisoformat(text), UTC)
            return today if today <= now else today - timedelta(days=1)
        age = _AGE.fullmatch(text)
        return in_utc(datetime.fromisoformat(text)) if age is None else now - int(age[1]) * _UNITS[age[2]]
    raise InvalidSettings(
        f"{text!r} is not a time",
        where=option,
        fix="Write 2026-11-20, 2026-11-20T08:00:00Z, 02:00 for the last time it was that, or 2h for two hours ago",
    )


_LONGEST = timedelta(days=365_000)


def _whole_number(_: object, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if abs(number) > LARGEST_INTEGER:
        raise ValueError(f"a number of {len(text)} digits is too large")
    return number


def _time(_: object, tokens: Sequence[Token]) -> datetime:
    text = tokens[0].value
    try:
        return in_utc(datetime.fromisoformat(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write 2026-11-20 or 2026-11-20T08:00:00Z") from None
    except OverflowError:
        raise ValueError(f"{text!r} is not in the years 1 to 9999, in UTC") from None


def _id(_: object, tokens: Sequence[Token]) -> UUID:
    text = tokens[0].value
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a UUID; write 01890a5d-ac96-774b-bcce-b302099a8057") from None


def _run(_: object, tokens: Sequence[Token]) -> UUID | IdStart:
    text = tokens[0].value
    with suppress(ValueError):
        return UUID(text)
    start = IdStart.of(text)
    if start is None:
        raise ValueError(f"{text!r} is neither the id of a run nor its first characters; see `assetflow runs ls`")
    return start


def _number_or_id(_: object, tokens: Sequence[Token], *, what: str, or_what: str) -> UUID | int | IdStart:
    text = tokens[0].value
    # A text of digits is a number, unless no number begins like that.
    if text.isascii() and text.isdigit() and not (text.startswith("0") and len(text) > 1):
        return int(text)
    with suppress(ValueError):
        return UUID(text)
    start = IdStart.of(text)
    if start is None:
        raise ValueError(f"{text!r} is neither the number of {what} nor {or_what}")
    return start


def _age(_: object, tokens: Sequence[Token]) -> timedelta:
    text = tokens[0].value
    try:
        age = cast(timedelta, convert(timedelta, tokens))
    except (CoercionError, OverflowError):
        raise ValueError(f"{text!r} is not a duration; write 90d or 26w") from None
    if age > _LONGEST:
        raise ValueError(f"{text!r} is too long; write 90d or 26w")
    return age


# What several commands have in common, with their help.
AsJson = Annotated[bool, Parameter(help="Print one JSON document.")]
Wide = Annotated[bool, Parameter(help="Show all columns and whole ids, however wide the terminal is.")]
AssetName = Annotated[str, Parameter(help="The asset: its URI or its name.")]

Age = Annotated[timedelta, Parameter(converter=_age)]
Time = Annotated[datetime, Parameter(converter=_time)]
Id = Annotated[UUID, Parameter(converter=_id, accepts_keys=False)]
_event = partial(_number_or_id, what="an event", or_what="its id; `assetflow events ls` shows both")
EventName = Annotated[UUID | int | IdStart, Parameter(converter=_event, accepts_keys=False)]
_decision = partial(_number_or_id, what="a decision", or_what="an id; `assetflow decisions ls` shows both")
DecisionName = Annotated[UUID | int | IdStart, Parameter(converter=_decision, accepts_keys=False)]
RunName = Annotated[UUID | IdStart, Parameter(converter=_run, accepts_keys=False)]
ZeroOrMore = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=0))]
AtLeastOne = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=1))]
BackfillNumber = Annotated[AtLeastOne, Parameter(help="Its number, as `assetflow backfill ls` shows it.")]
Port = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=0, lte=65_535))]


From = Annotated[str | None, Parameter(name="--from")]
To = Annotated[str | None, Parameter(name="--to")]


def read_range(start: str | None, end: str | None) -> tuple[datetime, datetime]:
    """Return the start of the first period and the end of the last one, as wall times.

    Raises:
        InvalidCall: one of them is missing, or the end is before the start.
        InvalidPartition: one of them is not a time.
    """
    if start is None or end is None:
        raise InvalidCall("a range needs --from and --to", fix="Write --from 2026-11-01 --to 2026-11-20, both included")
    return read_periods(start, end)


def this_user() -> str:
    """Return the name of the user who runs this process, or an empty text if the system does not know it."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
