"""Publish a text as a dataset, without Spark; as a script, be killed just before a named step."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from assetflow.spark import layout as layout_module
from assetflow.spark.layout import DatasetLayout, Staging


def write(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "part-0.parquet").write_text(text)


def publish_text(path: Path, text: str, task_run: str) -> None:
    layout = DatasetLayout(path)
    with layout.stage(task_run, 1) as staging:
        write(staging.data, text)
        with layout.lock():
            layout.commit(staging)


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_the_second_time(function: Callable[..., Any]) -> Callable[..., Any]:
    calls = iter([function, _die])
    return lambda *args: next(calls)(*args)


PLACES = {
    "mkdir": (Path, "mkdir"),
    "write": (sys.modules[__name__], "write"),
    "replace": (Path, "replace"),
    "exchange": (layout_module, "exchange"),
    "rmdir": (os, "rmdir"),
    "remove_buried": (Staging, "remove_buried"),
    "discard": (Staging, "discard"),
}


def main(path: str, text: str, task_run: str, point: str) -> None:
    point, _, variant = point.partition(":")
    if variant == "without-exchange":
        layout_module.exchange = lambda *_: False
    place, name = PLACES.get(point, (DatasetLayout, point))
    die = _die_the_second_time(getattr(place, name)) if variant == "second" else _die
    with patch.object(place, name, die):
        publish_text(Path(path), text, task_run)


if __name__ == "__main__":
    main(*sys.argv[1:])
