"""Facts that leave the house: declared once, as a class, for Python, `--json`, the API and its document.

pydantic writes and reads their JSON, and describes it. It is imported when that is first asked for.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from sys import modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.annotated_handlers import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

T = TypeVar("T")


def _describe(schema: dict[str, Any], kind: type) -> None:
    """Put the first paragraph of a class's docstring and the texts below its fields into its JSON schema."""
    schema["description"] = schema.get("description", "").partition("\n\n")[0].replace("\n", " ")
    texts = {
        name: text for each in reversed(kind.__mro__[:-1]) for name, text in _texts(each.__module__, each.__name__)
    }
    for each in fields(kind):
        found = schema["properties"].get(each.metadata.get(_ALIAS, each.name))
        if found is not None:
            found.pop("default", None)
            found |= {"description": texts[each.name]} if each.name in texts else {}


def _texts(module: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class below which a text stands, with the text."""
    for node in _parsed(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for declared, below in pairwise(node.body):
                match declared, below:
                    case ast.AnnAssign(target=ast.Name(id=attribute)), ast.Expr(value=ast.Constant(value=str(text))):
                        yield attribute, cleandoc(text).replace("\n", " ")
                    case _:
                        pass


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(getsource(modules[module]))


_CONFIG: ConfigDict = {
    "json_schema_serialization_defaults_required": True,
    "ser_json_timedelta": "float",
    "json_schema_extra": _describe,
}
_ALIAS = "serialization_alias"
# What `field(metadata=…)` says of a field that is not part of the JSON.
HIDDEN = MappingProxyType({"exclude": True})


def called(name: str) -> dict[str, str]:
    """Return what `field(metadata=…)` says of a field that has another name in JSON."""
    return {_ALIAS: name}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def shape(kind: type[T]) -> type[T]:
    """Make a frozen dataclass whose fields are its JSON: moments in ISO 8601, spans in seconds.

    The text below a field describes it in the API's document.
    """
    made = dataclass(frozen=True)(kind)
    made.__pydantic_config__ = _CONFIG  # type: ignore[attr-defined]
    for each in fields(made):  # type: ignore[arg-type]
        if each.metadata == HIDDEN:
            each.type = Any
    return made


@dataclass(frozen=True)
class As:
    """Annotates a field that is another value in JSON.

    Attributes:
        kind: the type of that value.
        write: returns it.
    """

    kind: Any
    write: Callable[[Any], object]

    def __get_pydantic_core_schema__(self, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core.core_schema import any_schema, plain_serializer_function_ser_schema

        written = handler.generate_schema(self.kind)
        return any_schema(serialization=plain_serializer_function_ser_schema(self.write, return_schema=written))


def _or_none(text: str) -> str | None:
    return text or None


TextOrNull = Annotated[str, As(str | None, _or_none)]
"""A text that is null in JSON if it is empty."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def as_json(fact: object) -> Any:
    """Return a fact, or anything made of facts, ids and moments, as JSON data."""
    return _adapter(type(fact)).dump_python(fact, mode="json", by_alias=True)


def as_text(kind: Any, fact: object) -> bytes:
    """Return a fact of a type as JSON in ASCII."""
    from pydantic_core import PydanticSerializationError

    try:
        return _adapter(kind).dump_json(fact, by_alias=True, ensure_ascii=True)
    except PydanticSerializationError:
        # A lone surrogate in an extra has no UTF-8 form, which pydantic goes through.
        data = _adapter(kind).dump_python(fact, mode="json", by_alias=True)
        return json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(kind: type[T], data: object) -> T:
    """Return the fact that `as_json` wrote."""
    return _adapter(kind).validate_python(data)
