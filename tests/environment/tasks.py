"""Background tasks of a test."""

from __future__ import annotations

import asyncio


async def cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
