"""A producer of updates as a process of its own: it makes so many, goes on where it was killed, and notes what it does.

Every update that is tried has a token of its own in its extra, so that one that came twice is seen.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from prefect import flow
from prefect.assets import add_asset_metadata, materialize

import assetflow
from assetflow import Asset, AssetAlias
from assetflow.cli import run as run_command
from tests.environment.posting import posted_update

PAUSE_AFTER_FAILURE = 0.5

Make = Callable[[random.Random, str], Awaitable[bool]]


class Notes:
    """The producer's notes: durable line by line, complete up to the moment of its death."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.done = sum("done" in line or "accepted" in line for line in lines)
        self.life = sum("life" in line for line in lines)
        self._file = path.open("a")
        self.write(life=self.life)

    def write(self, **note: object) -> None:
        self._file.write(json.dumps(note) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class Shop:
    """The assets of one world and four ways to update them."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._alias = AssetAlias(f"alias-{mark}")
        self.makes: dict[str, Make] = {
            "task": self.task,
            "materialize": self.materialize,
            "emit": self.emit,
            "post": self.post,
        }

    def uri(self, name: str) -> str:
        return f"s3://faults-{self._mark}/{name}"

    async def task(self, dice: random.Random, token: str) -> bool:
        """A flow with a task: one outlet, two, an alias, or a partition."""
        kind = dice.choice(["one", "two", "alias", "partition"])
        names = {"one": dice.choice("abcd"), "two": "bc", "alias": "x", "partition": dice.choice("pq")}[kind]
        assets = [Asset(self.uri(name)) for name in names]
        outlets: list[Any] = [self._alias] if kind == "alias" else assets
        key = f"day-{dice.randrange(8)}"

        @assetflow.task(outlets=outlets, name=f"update {kind}")
        async def update(outlet_events: Any = None) -> None:
            if kind == "alias":
                outlet_events[self._alias].add(assets[0], extra={"token": token})
                return
            for asset in assets:
                outlet_events[asset].extra = {"token": token}
                if kind == "partition":
                    outlet_events[asset].add_partitions(key)

        @assetflow.flow(name=f"producer-{self._mark}")
        async def produce() -> None:
            await update()

        await produce()
        return True

    async def materialize(self, dice: random.Random, token: str) -> bool:
        """A plain flow of Prefect's with a plain `@materialize` task; its event may be lost on the way."""
        uri = self.uri(dice.choice("abcd"))

        @materialize(uri)
        async def make() -> None:
            add_asset_metadata(uri, {"token": token})

        @flow(name=f"materializer-{self._mark}")
        async def produce() -> None:
            await make()

        await produce()
        return False

    async def emit(self, dice: random.Random, token: str) -> bool:
        """`assetflow emit`, in this process."""
        more = ["--key", f"day-{dice.randrange(8)}"] if dice.random() < 0.3 else []
        name = dice.choice("pq" if more else "abcd")
        arguments = ["emit", self.uri(name), "--extra", json.dumps({"token": token}), *more]
        if status := await asyncio.to_thread(run_command, arguments):
            raise RuntimeError(f"`assetflow {' '.join(arguments)}` ended with {status}")
        return True

    async def post(self, dice: random.Random, token: str) -> bool:
        """An event posted by somebody who has nothing but HTTP; Prefect answers before it keeps it."""
        event = posted_update(self.uri(dice.choice("abcd")), datetime.now(UTC), extra={"token": token})
        user, _, password = os.environ.get("PREFECT_API_AUTH_STRING", "").partition(":")
        given: dict[str, Any] = {"auth": (user, password)} if user else {}
        async with httpx.AsyncClient(base_url=os.environ["PREFECT_API_URL"], timeout=20, **given) as client:
            (await client.post("/events", json=[event])).raise_for_status()
        return False


async def main(kind: str, count: str, seed: str, mark: str, path: str) -> None:
    notes = Notes(Path(path))
    make = Shop(mark).makes[kind]
    dice = random.Random(f"{seed}-{notes.life}")
    tried = 0
    while notes.done < int(count):
        token = f"{kind}-{seed}-{notes.life}-{tried}"
        tried += 1
        try:
            is_accepted = await make(dice, token)
        except Exception as error:
            # Prefect was away: what became of this one is not known, the next one has another token.
            sys.stderr.write(f"{token}: {error!r}\n")
            await asyncio.sleep(PAUSE_AFTER_FAILURE)
            continue
        notes.write(**{"accepted" if is_accepted else "done": token})
        notes.done += 1


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
