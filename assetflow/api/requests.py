"""Pages of lists, and the types of request values: numbers that the ledger can store, times in UTC, plain text."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from hashlib import blake2b
from inspect import iscoroutinefunction
from typing import Annotated, Any, Generic, LiteralString, TypeVar

from fastapi import Depends, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from starlette.convertors import PathConvertor, register_url_convertor

from assetflow.core.json_data import is_plain_text
from assetflow.core.shapes import as_json, as_text, shape
from assetflow.errors import AssetflowWarning, InvalidCall
from assetflow.evaluator.process.status import held_up
from assetflow.ledger.lease import Evaluators, downtime
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import FoundAsset, consumer_at, find_asset
from assetflow.operations.needs import Need, needs_of

T = TypeVar("T")

LARGEST = 2**63 - 1
MOST = 1000
LONGEST_TOKEN = 5000
_IN_A_TOKEN = frozenset({"page", "limit"})


class _AnyPath(PathConvertor):
    """The rest of an address, line breaks too: such a URI is refused as a URI, not as an address that is not there."""

    regex = "(?s:.*)"


register_url_convertor("path", _AnyPath())


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError as error:
        raise _wrong("is not in the years 1 to 9999", "Write a time in these years, in UTC") from error


def _plain(text: str) -> str:
    if not is_plain_text(text):
        raise _wrong("contains the character NUL or a lone surrogate", "Leave it out")
    return text


def _wrong(message: LiteralString, fix: str) -> PydanticCustomError:
    return PydanticCustomError("wrong_value", message, {"fix": fix})


Moment = Annotated[datetime, AfterValidator(_in_utc)]
Text = Annotated[str, Field(max_length=1500), AfterValidator(_plain)]
Number = Annotated[int, Path(ge=0, le=LARGEST)]
Limit = Annotated[int, Query(ge=1, le=MOST, description="The largest number of items.")]


@shape
class Page(Generic[T]):
    """A page of a list."""

    items: Sequence[T]
    next: str | None
    """The token of the next page, to be given as `page` with the same parameters; null on the last one."""


@shape
class CountedPage(Page[T]):
    """A page of a list, with the length of the whole."""

    total: int


@dataclass(frozen=True)
class AskedPage:
    """The page of a list that a request asks for.

    A token is the place at which a page begins, with a digest of the list and its parameters.

    Attributes:
        limit: the largest number of items.
        of: the digest of the list that is asked for, with its parameters.
        place: where the page begins; `None` for the first page.
    """

    limit: int
    of: str
    place: object = None

    @property
    def number(self) -> int | None:
        """The place, in a list whose places are numbers."""
        if self.place is not None and not (type(self.place) is int and 0 <= self.place < LARGEST):
            raise _no_token()
        return self.place

    @property
    def text(self) -> str | None:
        """The place, in a list whose places are texts."""
        if self.place is not None and not (isinstance(self.place, str) and is_plain_text(self.place)):
            raise _no_token()
        return self.place

    def after(self, found: Sequence[T], place: Callable[[T], int | str]) -> Page[T]:
        """Return the page with these items.

        Parameters:
            found: what follows the place, at most `limit`.
            place: returns the place of an item: the next page begins after that of the last one.
        """
        return Page(found, self._token(place(found[-1])) if len(found) == self.limit else None)

    def within(self, found: Sequence[T]) -> Page[T]:
        """Return the page of a list that is read as a whole."""
        first = self.number or 0
        return self.counted(found[first : first + self.limit], len(found))

    def counted(self, found: Sequence[T], total: int) -> Page[T]:
        """Return the page with these items of a list whose places count from 0 to `total`."""
        last = (self.number or 0) + len(found)
        return Page(found, self._token(last) if found and last < total else None)

    def _token(self, place: int | str) -> str:
        return urlsafe_b64encode(json.dumps([self.of, place], separators=(",", ":")).encode()).decode().rstrip("=")


def asked_page(
    request: Request,
    page: Annotated[
        str | None,
        Query(
            max_length=LONGEST_TOKEN,
            description="The `next` of the page before, with the same parameters; without it, the list begins.",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="The largest number of items.")] = 100,
) -> AskedPage:
    """Return the page that a request asks for.

    Raises:
        InvalidCall: the token is invalid, or belongs to another list or other parameters.
    """
    given = sorted(each for each in request.query_params.multi_items() if each[0] not in _IN_A_TOKEN)
    digest = blake2b(json.dumps([request.url.path, given]).encode(), digest_size=6).hexdigest()
    if page is None:
        return AskedPage(limit, digest)
    of, place = _read(page)
    if of != digest:
        raise InvalidCall(
            "this page token belongs to another list, or to other parameters",
            where="query.page",
            fix="Give `next` of the previous page with the same parameters",
        )
    return AskedPage(limit, digest, place)


ThePage = Annotated[AskedPage, Depends(asked_page)]


def _read(token: str) -> tuple[object, object]:
    """Return the digest and the place in a token."""
    try:
        read: Any = json.loads(urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4)))
        of, place = read
    except (ValueError, TypeError, RecursionError) as error:
        raise _no_token() from error
    return of, place


def _no_token() -> InvalidCall:
    return InvalidCall(
        "this is not a page token", where="query.page", fix="Give `next` of the previous page, as it is; or no page"
    )


SIMULATIONS = 2


@dataclass(frozen=True)
class Backend(Installation):
    """The installation that the routes work on.

    Attributes:
        troubles: returns what the evaluator of this process cannot do now, with the reasons.
        simulations: limits how many simulations run at a time.
    """

    troubles: Callable[[], dict[str, str]] = dict[str, str]
    simulations: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIMULATIONS))

    def current_troubles(self, evaluators: Evaluators) -> dict[str, str]:
        """Return what the evaluator cannot do now, with the reasons; one of another process writes it to the ledger."""
        kept = held_up(self.ledger.reader) if evaluators.alive else ()
        return {each.name: each.reason for each in kept} | self.troubles()

    def needs(self, evaluators: Evaluators | None = None) -> list[Need]:
        """Return what needs a person.

        Parameters:
            evaluators: the evaluators, if they were read already.
        """
        evaluators = evaluators or self.ledger.reader.evaluators()
        down = downtime(evaluators)
        servers = {} if down is None else {down.reason: down.effect}
        return needs_of(self.ledger.reader, self.now(), servers | self.current_troubles(evaluators))


def backend_of(request: Request) -> Backend:
    return request.app.state.backend


def reader_of(request: Request) -> Reader:
    return backend_of(request).ledger.reader


async def now_of(request: Request) -> datetime:
    return backend_of(request).now()


TheBackend = Annotated[Backend, Depends(backend_of)]
TheReader = Annotated[Reader, Depends(reader_of)]
Now = Annotated[datetime, Depends(now_of)]


class Json(JSONResponse):
    """A JSON document in ASCII, with all other characters escaped: a lone surrogate in an extra has no UTF-8 form."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":"), default=as_json).encode("ascii")


class EtagRoute(APIRoute):
    """A route that writes the fact that its function returns, in the thread of the function.

    It answers GET with an ETag, and with 304 if the client already has the response.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        @wraps(endpoint)
        def call(*given: Any, **named: Any) -> Response:
            return self._written(endpoint(*given, **named))

        @wraps(endpoint)
        async def wait(*given: Any, **named: Any) -> Response:
            return self._written(await endpoint(*given, **named))

        super().__init__(path, wait if iscoroutinefunction(endpoint) else call, **options)

    def _written(self, found: Any) -> Response:
        if isinstance(found, Response):
            return found
        return Response(as_text(self.response_model, found), media_type="application/json")

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await answer(request)
            if request.method != "GET" or response.status_code != 200:
                return response
            tag = f'"{blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
            known = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
            headers = {"etag": tag, "cache-control": "private, no-cache"}
            if tag in known or "*" in known:
                return Response(status_code=304, headers=headers)
            response.headers.update(headers)
            return response

        return tagged


Flow = Annotated[Text, Path(max_length=500, description="The flow of `flow/deployment`.", examples=["report"])]
Deployment = Annotated[Text, Path(max_length=500, description="The deployment's name.", examples=["nightly"])]
NamedAsset = Annotated[
    Text, Query(min_length=1, description="The asset's URI, or its name.", examples=["s3://shop/orders"])
]
PathAsset = Annotated[
    Text, Path(min_length=1, description="The asset's URI, percent-encoded, or its name.", examples=["s3://lake/board"])
]


def consumer_of(reader: TheReader, flow: Flow, deployment: Deployment) -> ConsumerRecord:
    """Return the consumer that the path of a request names."""
    return consumer_at(reader, flow, deployment)


def asset_of(reader: TheReader, asset: NamedAsset) -> FoundAsset:
    """Return the asset that the query of a request names."""
    return find_asset(reader, asset)


TheConsumer = Annotated[ConsumerRecord, Depends(consumer_of)]
TheAsset = Annotated[FoundAsset, Depends(asset_of)]
AsksPreview = Annotated[bool, Query(description="Only say what this would lead to. Nothing is written.")]


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


_warning = threading.Lock()


def with_warnings(make: Callable[[], T]) -> tuple[T, list[str]]:
    """Call `make`, and return its result with the warnings it gave, such as a password in a URI."""
    with _warning, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssetflowWarning)
        made = make()
    return made, [str(each.message) for each in caught if issubclass(each.category, AssetflowWarning)]
