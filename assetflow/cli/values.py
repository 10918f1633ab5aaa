"""Values as a person types them on the command line.

Cyclopts would round 1.5 to 2 where a whole number is wanted, and says of a duration only that it is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, cast
from uuid import UUID

from cyclopts import CoercionError, Parameter, Token, convert
from cyclopts.validators import Number

_LONGEST = timedelta(days=365_000)


def _whole_number(_: object, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def _event(_: object, tokens: Sequence[Token]) -> UUID | int:
    text = tokens[0].value
    for read in (int, UUID):
        try:
            return read(text)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is neither the number of an event nor its id; `assetflow events ls` shows both")


def _age(_: object, tokens: Sequence[Token]) -> timedelta:
    text = tokens[0].value
    try:
        age = cast(timedelta, convert(timedelta, tokens))
    except (CoercionError, OverflowError):
        raise ValueError(f"{text!r} is no duration; write 90d or 26w") from None
    if age > _LONGEST:
        raise ValueError(f"{text!r} is longer than there have been events; write 90d or 26w")
    return age


Age = Annotated[timedelta, Parameter(converter=_age)]
EventName = Annotated[UUID | int, Parameter(converter=_event)]
AtLeastOne = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=1))]
Port = Annotated[int, Parameter(converter=_whole_number, validator=Number(gte=0, lte=65_535))]
