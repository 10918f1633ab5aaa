"""The credentials in Prefect's settings: the basic auth string of a server, or the API key of Prefect Cloud.

If both are set, the string wins, as in Prefect's own client.
"""

from __future__ import annotations

import base64

from prefect.settings import get_current_settings


def request_headers() -> dict[str, str]:
    """Return the headers for every request: those in Prefect's settings, and the authorization."""
    settings = get_current_settings()
    headers = dict(settings.client.custom_headers)
    if settings.api.auth_string is not None:
        token = base64.b64encode(settings.api.auth_string.get_secret_value().encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    elif settings.api.key is not None:
        headers["Authorization"] = f"Bearer {settings.api.key.get_secret_value()}"
    return headers


def event_stream_token() -> str | None:
    """Return the token for the first message on the event stream, or `None` if the settings have no credentials."""
    api = get_current_settings().api
    secret = api.auth_string or api.key
    return None if secret is None else secret.get_secret_value()
