"""How tests ask a Prefect server: as our own clients do, again when it is busy or a connection is cut."""

import time

import httpx

from assetflow.prefect_io.connection import AskAgain, retry_after

PATIENCE = AskAgain(seconds=60)
BUSY = 503
CUT = (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)


class AskingAgain(httpx.BaseTransport):
    """Sends a request again after 503, which Prefect answers while its SQLite is locked, and after a cut connection.

    Parameters:
        inner: what sends it.
        patience: how often, and for how long.
    """

    def __init__(self, inner: httpx.BaseTransport, patience: AskAgain = PATIENCE) -> None:
        self._inner = inner
        self._patience = patience

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        attempts = self._patience.start()
        while True:
            try:
                answer = self._inner.handle_request(request)
            except CUT:
                if (pause := attempts.pause()) is None:
                    raise
            else:
                pause = attempts.pause(retry_after(answer.headers)) if answer.status_code == BUSY else None
                if pause is None:
                    return answer
                answer.close()
            time.sleep(pause)

    def close(self) -> None:
        self._inner.close()
