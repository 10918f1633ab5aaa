"""Prefect as the API, the pages and the commands ask it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any


class FakePrefect:
    """Answers each request by `answer`, and keeps what was posted; while it has an `error`, nobody can connect."""

    url = "http://127.0.0.1:4200/api"

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []
        self.error: Exception | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        if self.error is not None:
            raise self.error
        yield self

    async def get(self, path: str, params: object = None) -> Any:  # noqa: ARG002 (nobody looks at them)
        return self.answer(path, None)

    async def post(self, path: str, body: Any) -> Any:
        self.asked.append((path, body))
        return self.answer(path, body)
