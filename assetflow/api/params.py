"""Parameters that several paths share: a consumer's address, and an asset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant

from assetflow.api.requests import Text
from assetflow.errors import InvalidCall

Flow = Annotated[Text, Path(max_length=500, description="The flow of `flow/deployment`.", examples=["report"])]
Deployment = Annotated[Text, Path(max_length=500, description="The deployment's name.", examples=["nightly"])]
NamedAsset = Annotated[
    Text, Query(min_length=1, description="The asset's URI, or its name.", examples=["s3://shop/orders"])
]
PathAsset = Annotated[
    Text, Path(min_length=1, description="The asset's URI, percent-encoded, or its name.", examples=["s3://lake/board"])
]
Preview = Annotated[bool, Query(description="Only say what this would lead to. Nothing is written.")]


async def refuse_unknown(request: Request) -> None:
    """Refuse a query parameter that the route does not have.

    Raises:
        InvalidCall: there is one; the error names those that the route has.
    """
    known = sorted(set(_query_parameters(request.scope["route"].dependant)))
    for name in request.query_params:
        if name not in known:
            fix = f"The parameters are: {', '.join(known)}" if known else "This request has no query parameters"
            raise InvalidCall("there is no such query parameter", where=f"query.{name}", fix=fix)


def _query_parameters(of: Dependant) -> Iterator[str]:
    yield from (each.alias for each in of.query_params)
    for dependency in of.dependencies:
        yield from _query_parameters(dependency)


ONLY_KNOWN = [Depends(refuse_unknown)]
