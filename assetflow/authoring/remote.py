"""A client of assetflow's REST API: it records updates in another environment and reads past events there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast
from urllib.parse import quote

import httpx

from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Versions
from assetflow.core.wire.fields import Json
from assetflow.errors import ApiNotAllowed, ApiRefused, ApiUnreachable, InvalidEvent, RecordingFailed
from assetflow.prefect_io.connection import AskAgain, refuses, retry_after, user_of
from assetflow.settings import get_settings

_ITEMS = 1000
_NOT_OURS = "the server that answers is not assetflow"
_FIXES = {401: "Give the right API key (ASSETFLOW_API_KEY)"}


class RemoteApi(AbstractContextManager["RemoteApi"]):
    """A client of one API. A context manager.

    Parameters:
        url: the address of the API, as in `https://flows.example.org`.
        api_key: the API key to send; empty for none.
        patience: seconds for which a call is repeated while the API is busy or away. The default is
            ASSETFLOW_RECORDING_TIMEOUT.
    """

    def __init__(self, url: str, api_key: str = "", *, patience: float | None = None) -> None:
        self.url = without_passwords(url.rstrip("/"))
        self._patience = get_settings().recording_timeout if patience is None else patience
        headers = {"X-API-Key": api_key} if api_key else {}
        # A redirect could lead elsewhere with the key.
        self._client = httpx.Client(auth=user_of(url), headers=headers, timeout=30, follow_redirects=False)

    @classmethod
    def of_settings(cls) -> RemoteApi:
        """Return a client of the API that ASSETFLOW_API_URL and ASSETFLOW_API_KEY name."""
        settings = get_settings()
        return cls(settings.api_url, settings.api_key)

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Json | None:
        """Return the JSON of a resource, or `None` if it does not exist.

        Raises:
            ApiUnreachable: the API did not answer, or was busy, for the whole time.
            ApiRefused: the API answered with an error that a retry does not change.
        """
        return self._call("GET", path, params=dict(params or {}), missing_ok=True)

    def items(self, path: str) -> Iterator[Json]:
        """Yield the items of a list, page by page.

        Raises:
            ApiUnreachable, ApiRefused: as `get`.
        """
        params: dict[str, str | int] = {"limit": _ITEMS}
        while True:
            page = self.get(path, params) or {"items": (), "next": None}
            yield from cast("Sequence[Json]", page["items"])
            if page["next"] is None:
                return
            params["page"] = cast("str", page["next"])

    def post(self, path: str, body: object) -> Json:
        """Send JSON and return the JSON of the answer, an empty object if there is none.

        Raises:
            ApiUnreachable, ApiRefused: as `get`.
        """
        return self._call("POST", path, json=body) or {}

    def record(self, events: Sequence[AssetEvent]) -> None:
        """Record updates through the API. They are durable when this returns.

        Raises:
            RecordingFailed: the API did not take them. Calling again with the same ids is safe.
            InvalidEvent: the API refused one of them; the message says why.
        """
        try:
            answer = self.post("/api/v1/events", {"events": [_to_json(event) for event in events]})
        except (ApiUnreachable, ApiRefused) as error:
            named = ", ".join(dict.fromkeys(event.uri for event in events))
            raise RecordingFailed(
                f"the update of {named} could not be recorded. {error.message}", where=error.where, fix=error.fix
            ) from error
        for item in cast("Sequence[Mapping[str, Any]]", answer.get("items", ())):
            if item["status"] == "refused":
                raise InvalidEvent(item["error"], where=self.url, fix=item["fix"] or "", rule=item["rule"])

    def observe(self, asset: Asset, versions: Versions) -> None:
        """Send the versions of a source that were seen. They are in the ledger when this returns.

        Raises:
            ApiUnreachable: as `get`.
            ApiNotAllowed: the API key may not send updates.
            ApiRefused: as `get`; or a flow makes the asset.
        """
        items = [{"partition_key": key, "data_version": version} for key, version in versions.items()]
        self.post(f"/api/v1/assets/{quote(asset.uri, safe='')}/observations", {"items": items})

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _call(self, method: str, path: str, *, missing_ok: bool = False, **given: Any) -> Json | None:
        attempts = AskAgain(self._patience).start()
        while True:
            try:
                response = self._client.request(method, f"{self.url}{path}", **given)
                if response.is_success or response.is_redirect or refuses(response.status_code):
                    return self._accepted(response, method, path, missing_ok)
                problem, asked, cause = f"answers {response.status_code}", retry_after(response.headers), None
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ApiRefused(f"{self.url!r} is not an address", fix="Write https://flows.example.org") from error
            except httpx.HTTPError as error:
                problem, asked, cause = f"does not answer: {str(error) or type(error).__name__}", None, error
            pause = attempts.pause(asked)
            if pause is None:
                raise ApiUnreachable(
                    f"assetflow's API {problem}, for {self._patience:g} s",
                    where=f"{method} {self.url}{path}",
                    fix="Check the address, and that `assetflow server start` runs there",
                ) from cause
            time.sleep(pause)

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
        kind = ApiNotAllowed if status == 403 else ApiRefused
        raise kind(
            f"assetflow's API answers {status}: {_told(response, 'detail') or _NOT_OURS}",
            where=f"{method} {self.url}{path}",
            fix=_FIXES.get(status) or _told(response, "fix") or "Check the address",
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
        "data_version": event.data_version,
    }


def _source(event: AssetEvent) -> str:
    """Return the event's `by`: the flow's name. Ids of runs mean nothing to another environment's Prefect."""
    run = event.origin.flow_run
    return event.origin.by if run is None else "/".join(name for name in (run.flow_name, run.deployment_name) if name)


def _is_problem(response: httpx.Response) -> bool:
    return response.headers.get("content-type", "").startswith("application/problem+json")


def _told(response: httpx.Response, field: str) -> str:
    """Return a field of the problem that assetflow's API answered with; "" if another server answered."""
    return str(cast(Json, response.json()).get(field) or "") if _is_problem(response) else ""
