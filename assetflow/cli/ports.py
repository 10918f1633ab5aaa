"""A port, as options name it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter, validators

Port = Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65_535))]
