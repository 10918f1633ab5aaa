"""What Prefect's settings say of who we are: the basic auth string of a server, or the API key of Prefect Cloud.

Where both are set the string counts, as for Prefect's own client.
"""

from __future__ import annotations

import base64

from prefect.settings import get_current_settings


def request_headers() -> dict[str, str]:
    """The headers of every request: those that Prefect's settings add, and the authorization."""
    settings = get_current_settings()
    headers = dict(settings.client.custom_headers)
    if settings.api.auth_string is not None:
        token = base64.b64encode(settings.api.auth_string.get_secret_value().encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    elif settings.api.key is not None:
        headers["Authorization"] = f"Bearer {settings.api.key.get_secret_value()}"
    return headers


def event_stream_token() -> str | None:
    """What the first message on the event stream has to hold; none for a server that lets everybody in."""
    api = get_current_settings().api
    secret = api.auth_string or api.key
    return None if secret is None else secret.get_secret_value()
