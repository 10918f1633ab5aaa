"""The processes that a test session started and has not ended.

Every process inherits the session's mark in its environment, so one is found too whose parent has ended. Linux only:
elsewhere nothing can be seen, and nothing is reported.
"""

import os
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

MARK = f"ASSET_TEST_SESSION={uuid.uuid4()}"
PROC = Path("/proc")
# Python's own helper; it ends with the process that it belongs to.
ENDS_BY_ITSELF = "multiprocessing.resource_tracker"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    def __str__(self) -> str:
        return f"{self.pid} {self.command[:160]}"


def mark_session() -> None:
    """From here on, every process that is started carries the session's mark."""
    name, value = MARK.split("=")
    os.environ[name] = value


def left_running(wait: float = 5.0) -> list[Process]:
    """The processes of this session that have not ended after `wait` seconds."""
    deadline = time.monotonic() + wait
    while (found := _started_here()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def stop_spark_gateway() -> None:
    """End the JVM of PySpark's classic mode, which would otherwise live as long as this process."""
    pyspark = sys.modules.get("pyspark")
    gateway = pyspark.SparkContext._gateway if pyspark else None
    if pyspark is None or gateway is None:
        return
    if pyspark.SparkContext._active_spark_context is not None:
        pyspark.SparkContext._active_spark_context.stop()
    gateway.shutdown()
    jvm = gateway.proc
    jvm.stdin.close()
    jvm.wait(timeout=20)
    pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


def _started_here() -> list[Process]:
    if not PROC.is_dir():
        return []
    everything = {process.pid: process for entry in PROC.glob("[0-9]*") if (process := _read(entry))}
    return [
        process
        for process in everything.values()
        if process.pid != os.getpid()
        and ENDS_BY_ITSELF not in process.command
        and (_is_marked(process.pid) or _is_descendant(process, everything))
    ]


def _read(entry: Path) -> Process | None:
    try:
        # The name stands in brackets and may hold spaces; what follows is state and parent.
        state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    return None if state == "Z" else Process(int(entry.name), int(parent), command)


def _is_marked(pid: int) -> bool:
    try:
        return MARK.encode() in (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False


def _is_descendant(process: Process, everything: dict[int, Process]) -> bool:
    current: Process | None = process
    while current is not None:
        if current.parent == os.getpid():
            return True
        current = everything.get(current.parent)
    return False
