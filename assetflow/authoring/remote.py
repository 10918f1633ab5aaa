"""assetflow's REST API for code that runs elsewhere: updates for another environment, and past events from afar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

import httpx

from assetflow.core.codec.events import Json
from assetflow.core.events import AssetEvent
from assetflow.errors import ApiRefused, ApiUnreachable, InvalidEvent, RecordingFailed
from assetflow.patience import Patience, is_busy
from assetflow.settings import get_settings


class RemoteApi:
    """Calls to one API. A context manager.

    Parameters:
        url: its address, as in `https://flows.example.org`.
        key: its key; empty if it has none.
        patience: seconds for which a call is repeated while the API is busy or away.
    """

    def __init__(self, url: str, key: str = "", *, patience: float | None = None) -> None:
        self.url = url.rstrip("/")
        self._patience = get_settings().recording_timeout if patience is None else patience
        headers = {"X-API-Key": key} if key else {}
        # A redirect could lead elsewhere with the key.
        self._client = httpx.Client(headers=headers, timeout=30, follow_redirects=False)

    @classmethod
    def of_settings(cls) -> RemoteApi:
        """The API that ASSETFLOW_API_URL and ASSETFLOW_API_KEY name."""
        settings = get_settings()
        return cls(settings.api_url, settings.api_key)

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Json | None:
        """A resource; none if there is none.

        Raises:
            ApiUnreachable: no answer, or none but "busy", within the patience.
            ApiRefused: an error that a repetition does not change.
        """
        return self._call("GET", path, params=dict(params or {}), missing_ok=True)

    def post(self, path: str, body: object) -> Json:
        """Send JSON; the answer. Raises as `get`."""
        return self._call("POST", path, json=body) or {}

    def record(self, events: Sequence[AssetEvent]) -> None:
        """Record updates there; they are durable when this returns.

        Raises:
            RecordingFailed: it did not take them; with the same ids, calling again is safe.
            InvalidEvent: it refuses one, for the reason given.
        """
        try:
            answer = self.post("/api/v1/events", {"events": [_to_json(event) for event in events]})
        except (ApiUnreachable, ApiRefused) as error:
            named = ", ".join(dict.fromkeys(event.uri for event in events))
            raise RecordingFailed(
                f"the update of {named} could not be recorded. {error.message}", where=error.where, fix=error.fix
            ) from error
        for item in cast("Sequence[Mapping[str, str]]", answer.get("items", ())):
            if item["status"] == "refused":
                raise InvalidEvent(item["error"], where=self.url, fix=item.get("fix", ""), rule=item.get("rule"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def _call(self, method: str, path: str, *, missing_ok: bool = False, **given: Any) -> Json | None:
        patience = Patience(self._patience)
        while True:
            try:
                response = self._client.request(method, f"{self.url}{path}", **given)
                if not is_busy(response.status_code):
                    return self._accepted(response, method, path, missing_ok)
                problem, cause = f"answers {response.status_code}", None
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ApiRefused(f"{self.url!r} is no address", fix="Write https://flows.example.org") from error
            except httpx.HTTPError as error:
                problem, cause = f"does not answer: {error or type(error).__name__}", error
            if not patience.pause():
                raise ApiUnreachable(
                    f"assetflow's API {problem}, for {patience.seconds:g} s",
                    where=f"{method} {self.url}{path}",
                    fix="Check the address, and that `assetflow server start` runs there",
                ) from cause

    def _accepted(self, response: httpx.Response, method: str, path: str, missing_ok: bool) -> Json | None:
        status = response.status_code
        if status == 404 and missing_ok and _is_problem(response):
            return None
        # A 422 with items is the report of a POST of events.
        if response.is_success or (status == 422 and not _is_problem(response)):
            try:
                return cast(Json, response.json())
            except ValueError:
                pass
        raise ApiRefused(
            f"assetflow's API answers {status}: {_detail(response)}",
            where=f"{method} {self.url}{path}",
            fix="Give the right key (ASSETFLOW_API_KEY)" if status == 401 else "Check the address",
        )


def _to_json(event: AssetEvent) -> dict[str, object]:
    asset = event.asset
    return {
        "id": str(event.id),
        "uri": asset.uri,
        "name": None if asset.name == asset.uri else asset.name,
        "group": asset.group,
        "extra": dict(event.extra),
        "partition_key": event.partition_key,
        "aliases": list(event.aliases),
        "occurred": event.occurred.isoformat(),
        "by": _source(event),
    }


def _source(event: AssetEvent) -> str:
    """Who says so: the flow there has another Prefect, so its name is all that means something here."""
    run = event.origin.flow_run
    return event.origin.by if run is None else "/".join(name for name in (run.flow_name, run.deployment_name) if name)


def _is_problem(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").startswith("application/problem+json")


def _detail(response: httpx.Response) -> str:
    if _is_problem(response):
        return str(cast(Json, response.json()).get("detail", ""))
    return "it is not assetflow that answers"
