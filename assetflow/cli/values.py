"""The types of command line options: whole numbers, ports, durations, events and decisions.

They replace the converters of Cyclopts, which rounds 1.5 to 2 and does not say how a duration is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, cast
from uuid import UUID

from cyclopts import CoercionError, Parameter, Token, convert
from cyclopts.validators import Number

from assetflow.cli.times import in_utc
from assetflow.core.json_data import LARGEST_INTEGER
from assetflow.core.short_ids import IdStart

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


def _event(_: object, tokens: Sequence[Token]) -> UUID | int | IdStart:
    return _number_or_id(tokens[0].value, "an event", "its id; `assetflow events ls` shows both")


def _decision(_: object, tokens: Sequence[Token]) -> UUID | int | IdStart:
    return _number_or_id(tokens[0].value, "a decision", "an id; `assetflow decisions ls` shows both")


def _number_or_id(text: str, what: str, or_what: str) -> UUID | int | IdStart:
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


Age = Annotated[timedelta, Parameter(converter=_age)]
Time = Annotated[datetime, Parameter(converter=_time)]
Id = Annotated[UUID, Parameter(converter=_id, accepts_keys=False)]
EventName = Annotated[UUID | int | IdStart, Parameter(converter=_event, accepts_keys=False)]
DecisionName = Annotated[UUID | int | IdStart, Parameter(converter=_decision, accepts_keys=False)]
ZeroOrMore = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=0))]
AtLeastOne = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=1))]
Port = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=0, lte=65_535))]
