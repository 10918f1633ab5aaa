"""What an answer of Prefect's API means, and when a request is sent again: the same for every client.

A proxy or a router may answer in Prefect's place for a while. Only an answer that Prefect itself can have given counts
as a refusal. After every other answer, the same request may succeed later.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast
from uuid import UUID

import httpx

from assetflow.errors import PrefectNotFound, PrefectRefused, PrefectUnauthorized, PrefectUnreachable

# FastAPI's answer for an unknown path. For an unknown object, Prefect answers "… not found".
_NO_SUCH_PATH = "Not Found"
# The statuses with which a server says that it is overloaded.
_OVERLOADED = frozenset({429, 503})
_IS_API = (
    "Check that PREFECT_API_URL is the address of the API, as in http://127.0.0.1:4200/api, "
    "and what is between here and the Prefect server"
)
_DETAILS = ("detail", "exception_detail", "exception_message")
_SHOWN = 500


def read_answer(response: httpx.Response, request: str, address: str) -> Any:
    """Return the JSON of an answer, or `None` if the answer is empty.

    Parameters:
        response: the answer, read to its end.
        request: the request for messages, as in `POST /artifacts/`.
        address: the address of the API for messages, without a password.

    Raises:
        PrefectNotFound: Prefect does not know the object that the request names.
        PrefectRefused: Prefect refuses the request, and will refuse it again.
        PrefectUnauthorized: the key or the password is wrong or missing (401, 403).
        PrefectUnreachable: any other answer: a busy server, an error without a detail, a success that is not JSON.
            The same request may succeed later, after `retry_after` seconds if the server names a time.
    """
    if not response.is_success:
        raise _failure(response, request, address)
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise _not_prefect(response, request, address) from error


def id_of(answer: object) -> UUID:
    """Return the id of the object that Prefect has answered with.

    Raises:
        PrefectUnreachable: there is no id, so that something other than Prefect has answered.
    """
    try:
        return UUID(str(cast("Mapping[str, object]", answer)["id"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _no_object("its answer has no id") from error


def objects_of(answer: object) -> Sequence[Mapping[str, Any]]:
    """Return the objects that Prefect has listed.

    Raises:
        PrefectUnreachable: there is no list of objects, so that something other than Prefect has answered.
    """
    if not isinstance(answer, list):
        raise _no_object("its answer is not a list")
    listed = cast("list[object]", answer)
    if not all(isinstance(each, Mapping) for each in listed):
        raise _no_object("its list is not one of objects")
    return cast("list[Mapping[str, Any]]", listed)


def no_answer(error: Exception, address: str) -> PrefectUnreachable:
    """Return the error for a request that got no answer: the connection was refused, was lost or timed out."""
    return PrefectUnreachable(
        f"Prefect does not answer: {str(error) or type(error).__name__}",
        where=address,
        fix="Check that the Prefect server is running (`prefect server start`) and that PREFECT_API_URL is its address",
    )


def unreadable(error: Exception, address: str) -> PrefectUnreachable:
    """Return the error for an answer that is JSON, but not in a form in which Prefect answers."""
    return PrefectUnreachable(
        f"something that is not Prefect's API answers: {type(error).__name__}: {error}", where=address, fix=_IS_API
    )


def unconfirmed(refusal: PrefectRefused) -> PrefectUnreachable:
    """Return the error for a refusal that comes from something on the way, as far as Prefect's other answers tell."""
    return PrefectUnreachable(f"{refusal.message}; Prefect itself does not confirm it")


def _failure(response: httpx.Response, request: str, address: str) -> PrefectRefused | PrefectUnreachable:
    status, detail = response.status_code, _detail(response)
    if status in UNAUTHORIZED:
        return PrefectUnauthorized(
            f"Prefect does not let us in ({status} for {request})",
            where=address,
            fix="Check PREFECT_API_KEY and PREFECT_API_AUTH_STRING",
        )
    if refuses(status) and detail == _NO_SUCH_PATH:
        return _not_prefect(response, request, address)
    problem = f"Prefect answers {status} to {request}: {detail or _text(response)}"
    if not refuses(status) or detail is None:
        failure = PrefectUnreachable(problem, where=address)
        failure.retry_after = retry_after(response.headers)
        failure.is_busy = status in _OVERLOADED
        return failure
    return PrefectNotFound(problem) if status == HTTPStatus.NOT_FOUND else PrefectRefused(problem)


def _not_prefect(response: httpx.Response, request: str, address: str) -> PrefectUnreachable:
    return PrefectUnreachable(
        f"something that is not Prefect's API answers {response.status_code} to {request}: {_text(response)}",
        where=address,
        fix=_IS_API,
    )


def _no_object(what: str) -> PrefectUnreachable:
    return PrefectUnreachable(f"something that is not Prefect answered: {what}", fix="Check PREFECT_API_URL")


def _detail(response: httpx.Response) -> str | None:
    """Return what Prefect says about an error, or `None` if the answer is not Prefect's."""
    try:
        data = response.json()
    except ValueError:
        return None
    if not isinstance(data, Mapping):
        return None
    answer = cast("Mapping[str, object]", data)
    found = next((answer[name] for name in _DETAILS if answer.get(name) is not None), None)
    return None if found is None else str(found)[: 2 * _SHOWN]


def _text(response: httpx.Response) -> str:
    return " ".join(response.text.split())[:_SHOWN] or "empty"


UNAUTHORIZED = frozenset({401, 403})
_REFUSALS = UNAUTHORIZED | {400, 404, 409, 413, 422}


def refuses(status: int) -> bool:
    """Return True if Prefect's API or assetflow's refuses a request with this HTTP status, and will refuse it again.

    Any other failure comes from a server in trouble, or from something on the way: the same request may succeed later.
    """
    return status in _REFUSALS


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a server asks to be asked again, or `None` if it names no number of seconds."""
    text = headers.get("Retry-After", "")
    return float(text) if text.replace(".", "", 1).isdigit() else None


@dataclass(frozen=True)
class AskAgain:
    """How often, and for how long, a request is sent again.

    Attributes:
        seconds: how long after the first attempt others may begin.
        times: how many attempts follow the first one at most.
        first_pause: seconds before the second attempt; each pause is twice as long as the one before.
        longest_pause: seconds that no pause exceeds.
    """

    seconds: float = math.inf
    times: float = math.inf
    first_pause: float = 0.1
    longest_pause: float = 4.0

    def start(self, clock: Callable[[], float] = time.monotonic) -> Attempts:
        """Return the attempts of one request; their time runs from now on."""
        return Attempts(self, clock)


class Attempts:
    """The attempts of one request.

    Attributes:
        policy: how often, and for how long.
    """

    def __init__(self, policy: AskAgain, clock: Callable[[], float]) -> None:
        self.policy = policy
        self._clock = clock
        self._deadline = clock() + policy.seconds
        self._pause = policy.first_pause
        self._times = policy.times

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._deadline - self._clock()

    def pause(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait before the next attempt; `None` if there is to be no other.

        Parameters:
            asked: seconds that the other side asks for, instead of a pause that grows from one to the next.
        """
        wait = self._pause * random.uniform(0.8, 1.2) if asked is None else asked
        if self._times < 1 or wait >= self.left:
            return None
        self._times -= 1
        self._pause = min(self._pause * 2, self.policy.longest_pause)
        return wait
