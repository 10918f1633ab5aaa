"""What this machine has of the things that some tests need."""

import os
import shutil
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path

# The first one is Chromium without windows: the tests take a quarter of the CPU time that they take with the others.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MAC_CHROME = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def chromium() -> str | None:
    """The command of the system's Chromium, for `playwright.chromium.launch(executable_path=...)`."""
    found = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    return found or (str(MAC_CHROME) if MAC_CHROME.exists() else None)


@cache
def missing(marker: str) -> str | None:
    """Why tests with this marker cannot run here ("needs ..."), or None if they can."""
    if marker not in NEEDS:
        return None
    is_here, reason = NEEDS[marker]
    return None if is_here() else reason


def _has_java() -> bool:
    from assetflow.errors import JavaNotFound
    from assetflow.spark.java import find_java

    try:
        find_java(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))
    except JavaNotFound:
        return False
    return True


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "spark": (_has_java, "needs Java 17 or newer"),
    "browser": (lambda: chromium() is not None, "needs Chromium"),
    "postgres": (lambda: listens(5432), "needs PostgreSQL on 127.0.0.1:5432"),
    "redis": (lambda: listens(6379), "needs Redis on 127.0.0.1:6379"),
}
