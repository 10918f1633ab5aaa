"""The documentation of the API at `/docs`, made from its OpenAPI document: operations, parameters, examples."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from assetflow.web.pages import ThePages

router = APIRouter()

Schema = Mapping[str, Any]
DEEPEST = 6
_BY_FORMAT = {"uuid": "8accd21f-37da-4369-9225-57ff3ccd8b34", "date-time": "2026-11-20T08:00:00Z", "date": "2026-11-20"}
_BY_NAME = {
    "asset_id": 1,
    "deployment": "shop",
    "flow": "report",
    "key": "2026-11-20",
    "partition_key": "2026-11-20",
    "target_key": "2026-11-20",
    "uri": "s3://shop/orders",
    "watcher": "orders-queue",
}
_BY_TYPE: dict[str, object] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation, with its type in words."""

    name: str
    where: str
    kind: str
    required: bool
    words: str


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    Attributes:
        id: its operation id, which clients made from the document have as the name of a function.
        right: what a key has to allow for it; "" if it needs no key.
        words: its description, in paragraphs; the first one is a sentence or two.
        body, answer: examples of the request's body and of the answer, as JSON; "" without one.
        refusals: the HTTP statuses with which it refuses, each with a word.
        curl: a command that calls it.
    """

    id: str
    tag: str
    method: str
    path: str
    right: str
    words: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: str
    answer: str
    refusals: tuple[tuple[str, str], ...]
    curl: str


@router.get("/docs")
def show_docs(request: Request, pages: ThePages) -> Response:
    """Show the documentation of the API."""
    document: Schema = request.app.openapi()
    own, airflow = (
        [each for each in operations_of(document) if is_airflow(each) == wanted] for wanted in (False, True)
    )
    return pages.show(
        request,
        "docs.html",
        about=str(document["info"]["description"]).strip().split("\n\n"),
        version=document["info"]["version"],
        parts=(("assetflow's own", by_tag(own)), ("Airflow's paths and shapes", by_tag(airflow))),
    )


def is_airflow(operation: Operation) -> bool:
    """Return True if an operation has Airflow's path and shape."""
    return operation.id.startswith("airflow")


def by_tag(operations: Sequence[Operation]) -> list[tuple[str, list[Operation]]]:
    """Return the operations by their tags."""
    ordered = sorted(operations, key=lambda each: each.tag)
    return [(tag, list(found)) for tag, found in groupby(ordered, key=lambda each: each.tag)]


def operations_of(document: Schema) -> Iterator[Operation]:
    """Yield the operations of an OpenAPI document, in its order."""
    examples = _Examples(document["components"]["schemas"])
    for path, methods in document["paths"].items():
        for method, told in cast("Mapping[str, Schema]", methods).items():
            body = examples.of_content(cast("Schema", told.get("requestBody") or {}))
            answers = cast("Mapping[str, Schema]", told["responses"])
            good = next(answer for status, answer in answers.items() if status < "300")
            yield Operation(
                id=told["operationId"],
                tag=(told.get("tags") or ["other"])[0],
                method=method.upper(),
                path=path,
                right=_right(told),
                words=tuple(part.replace("\n", " ") for part in told["description"].split("\n\n")),
                parameters=tuple(_parameter(each, examples) for each in told.get("parameters", ())),
                body=_json(body),
                answer=_json(examples.of_content(good)),
                refusals=tuple((status, each["description"]) for status, each in answers.items() if status >= "400"),
                curl=_curl(method.upper(), path, body),
            )


class _Examples:
    """Makes examples from schemas: those that they give, and values of their types where they give none."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def of_content(self, message: Schema) -> object:
        """Return an example of a request's body or of an answer; `None` if it has no JSON."""
        content = message.get("content", {}).get("application/json")
        return None if content is None else self.of(content.get("schema", {}))

    def of(self, schema: Schema, name: str = "", depth: int = 0) -> Any:
        schema = self.resolved(schema)
        for given in (schema.get("example"), *schema.get("examples", ())[:1], schema.get("const")):
            if given is not None:
                return given
        if "enum" in schema:
            return schema["enum"][0]
        if depth > DEEPEST:
            return None
        if schema.get("type") == "array":
            return [self.of(schema.get("items", {}), name.removesuffix("s"), depth + 1)]
        if "properties" in schema:
            return {each: self.of(inner, each, depth + 1) for each, inner in schema["properties"].items()}
        if schema.get("type") == "object":
            return {}
        return (
            _BY_NAME.get(name) or _BY_FORMAT.get(schema.get("format", "")) or _BY_TYPE.get(schema.get("type", ""), {})
        )

    def kind(self, schema: Schema) -> str:
        """Return the type of a parameter in words."""
        schema = self.resolved(schema)
        if "enum" in schema:
            return " or ".join(map(str, schema["enum"]))
        return str(schema.get("format") or schema.get("type") or "any")

    def resolved(self, schema: Schema) -> Schema:
        """Return what a schema refers to; of several choices the first that is not null."""
        while True:
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            elif choices := schema.get("anyOf", schema.get("oneOf", schema.get("allOf"))):
                chosen = next((each for each in choices if each.get("type") != "null"), choices[0])
                schema = {**chosen, **{name: schema[name] for name in ("example", "examples") if name in schema}}
            else:
                return schema


def _parameter(told: Schema, examples: _Examples) -> Parameter:
    schema = told.get("schema", {})
    words = str(told.get("description") or schema.get("description") or "")
    return Parameter(told["name"], told["in"], examples.kind(schema), bool(told.get("required")), words)


def _right(told: Schema) -> str:
    rights = [right for each in told.get("security", ()) for right in each.get("bearer", ())]
    return rights[0] if rights else ""


def _curl(method: str, path: str, body: object) -> str:
    for name, example in (*_BY_NAME.items(), ("", _BY_FORMAT["uuid"])):
        path = path.replace(f"{{{name}}}", quote(str(example), safe=""))
    start, _, rest = path.partition("{")
    while rest:
        start, _, rest = (start + _BY_FORMAT["uuid"] + rest.partition("}")[2]).partition("{")
    parts = ["curl", *(["-X", method] if method != "GET" else []), f"http://127.0.0.1:4300{start}"]
    if body is not None:
        parts += ["-H", "content-type: application/json", "-d", json.dumps(body)]
    return " ".join(map(shlex.quote, parts))


def _json(example: object) -> str:
    return "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
