"""The parameters that a deployment takes: ask Prefect for them, read what was typed, and refuse other names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from assetflow.core.values.words import joined
from assetflow.errors import Conflict, InvalidCall
from assetflow.operations.installation import OpenPrefect
from assetflow.prefect_io.names import EVENTS_PARAMETER

Kind = Literal["text", "number", "boolean", "json"]
_KINDS: Mapping[str, Kind] = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a flow.

    Attributes:
        kind: how its value is typed: as it is, as a number, as true or false, or as JSON.
        default: its value if nothing is given, as JSON; "" if it has none.
        words: what the flow's docstring says about it.
    """

    name: str
    kind: Kind
    default: str
    words: str

    @property
    def is_required(self) -> bool:
        return not self.default

    def read(self, text: str) -> object:
        """Return the value that was typed.

        Raises:
            InvalidCall: the text is not a value of this kind; `where` is the name of the parameter.
        """
        if self.kind == "text":
            return text
        try:
            value: object = json.loads(text)
        except ValueError as error:
            raise self._refused(text) from error
        if self.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self._refused(text)
        return value

    def _refused(self, text: str) -> InvalidCall:
        what = {"number": "a number", "boolean": "true or false"}.get(self.kind, "JSON")
        return InvalidCall(f"{text!r} is not {what}", where=self.name, fix=f"Write {what}")


async def parameters_of(prefect: OpenPrefect, deployment: UUID) -> Sequence[Parameter]:
    """Return the parameters of a deployment in the order of the flow's signature.

    Raises:
        Conflict: Prefect has deleted the deployment.
        PrefectUnreachable, PrefectRefused
    """
    async with prefect() as api:
        found = cast("Mapping[str, Any] | None", await api.get(f"/deployments/{deployment}"))
    if found is None:
        raise Conflict(f"Prefect has no deployment {deployment} any more", rule="4.5", fix="Deploy the flow again")
    schema = cast("Mapping[str, Any]", found.get("parameter_openapi_schema") or {})
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
    given = cast("Mapping[str, object]", found.get("parameters") or {})
    known = sorted(properties.items(), key=lambda item: item[1].get("position", 0))
    return [_parameter(name, each, given) for name, each in known if name != EVENTS_PARAMETER]


def _parameter(name: str, schema: Mapping[str, Any], given: Mapping[str, object]) -> Parameter:
    choices = cast("Sequence[Mapping[str, Any]]", schema.get("anyOf") or (schema,))
    types = {str(each.get("type", "")) for each in choices} - {"null"}
    default = given.get(name, schema.get("default")) if name in given or "default" in schema else ...
    kind = _KINDS.get(next(iter(types), ""), "json") if len(types) == 1 else "json"
    return Parameter(name, kind, "" if default is ... else json.dumps(default), str(schema.get("description") or ""))


def check_names(known: Sequence[Parameter], given: Mapping[str, object]) -> None:
    """Refuse parameters that a flow does not take.

    Raises:
        InvalidCall: `where` is `parameters`.
    """
    names = [each.name for each in known]
    others = [name for name in given if name not in names]
    if others:
        raise InvalidCall(
            f"the flow has no parameter {joined(list(map(repr, others)))}",
            where="parameters",
            fix=f"It takes {joined(names)}" if names else "It takes none",
        )


def read_typed(known: Sequence[Parameter], texts: Mapping[str, str]) -> dict[str, object]:
    """Return the values of parameters that were typed; an empty text stands for the default.

    Raises:
        InvalidCall: a value is of another kind, or one without a default is missing; `where` is the parameter's name.
    """
    missing = next((each.name for each in known if each.is_required and not texts.get(each.name)), None)
    if missing is not None:
        raise InvalidCall("it has no default", where=missing, fix="Give it a value")
    return {each.name: each.read(text) for each in known if (text := texts.get(each.name, ""))}
