"""The template: a process that has imported what flow runs need, and forks a child for each run.

It has one Python thread and no event loop, so that a child begins in a known state. It ends when its worker has gone
and its last child has ended: `python -m assetflow.worker.template SOCKET MODULE...`, with a pipe from the worker as its
input, imports the modules besides.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assetflow.worker.child import Job, become, differs, preload, read_job, read_sources, set_up, why_not_preload
from assetflow.worker.client import BEGIN, FORKED
from assetflow.worker.may_fork import Renewal, why_not_fork, why_not_serve

SECONDS_TO_READ = 5.0
_PAUSE = 0.2
_COMMAND = (sys.executable, "-m", "assetflow.worker.template")
# Prefect sends these to all processes of a flow run.
_FOR_ALL = frozenset({signal.SIGTERM, signal.SIGKILL})


@dataclass
class _Child:
    """A child that is not reaped yet: its process, and the pipe through which it learns that it may begin.

    Attributes:
        is_stopped: what it has started ends with it.
    """

    number: int
    begin: int
    is_stopped: bool = False

    def send(self, number: int) -> None:
        """Send it a signal. It is not reaped yet, so its number is still its own."""
        if number in _FOR_ALL:
            self.is_stopped = True
            # Until it leads a process group, it has started nothing.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.number, number)
                return
        os.kill(self.number, number)

    def reap(self) -> int | None:
        """Return the exit code once it has ended, or `None`."""
        if os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        if self.is_stopped:
            self.send(signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        return os.waitstatus_to_exitcode(status)


class _Spare:
    """An open file that is there to be given up when no other can be opened."""

    def __init__(self) -> None:
        self._number = -1
        self.open()

    def open(self) -> None:
        with contextlib.suppress(OSError):
            self._number = self._number if self._number >= 0 else os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
        self._number = -1


class Template:
    """Forks children for the clients that connect.

    Parameters:
        listener: the listening socket, at `place`.
        worker: a descriptor whose end says that the worker has gone.
        is_outdated: returns True when this template is to be replaced; it then forks no more children.
    """

    def __init__(self, listener: socket.socket, worker: int, is_outdated: Callable[[], bool]) -> None:
        self._listener = listener
        self._worker = worker
        self._is_outdated = is_outdated
        self._selector = selectors.DefaultSelector()
        self._clients: dict[socket.socket, _Child] = {}
        self._is_open = True
        self._woken, self._wakes = socket.socketpair()
        # At the limit of open files, one is given up for a moment to turn a client away.
        self._spare = _Spare()
        self._is_short = False

    def serve(self) -> Job | None:
        """Serve until the worker has gone; return `None` then, and in each child the job that it is to do."""
        self._wakes.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _awake)
        # Ctrl-C in the worker's terminal is for the clients.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for each in (self._listener, self._woken, self._worker):
            self._selector.register(each, selectors.EVENT_READ)
        while self._is_open or self._clients:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    job = self._accept()
                    if job is not None:
                        return job
                elif key.fileobj is self._woken:
                    self._woken.recv(4096)
                elif key.fileobj == self._worker:
                    self._close()
                elif key.fileobj in self._clients:
                    self._hear(key.fileobj)  # pyright: ignore[reportArgumentType]
            self._reap()
        return None

    def _accept(self) -> Job | None:
        try:
            client, _ = self._listener.accept()
        except OSError as error:
            self._turn_away(error)
            return None
        client.settimeout(SECONDS_TO_READ)
        try:
            job = read_job(client)
        except (OSError, ValueError):
            client.close()
            return None
        try:
            return self._begin(client, job)
        except OSError as error:
            self._say(error)
            job.close()
            client.close()
            return None

    def _begin(self, client: socket.socket, job: Job) -> Job | None:
        if differs(job.environment) or not self._can_fork(client):
            job.close()
            # The client reads the end of the connection, and becomes an ordinary process.
            client.close()
            return None
        waits, begin = os.pipe()
        try:
            number = self._fork()
        except OSError:
            os.close(waits)
            os.close(begin)
            raise
        if number == 0:
            client.close()
            os.close(begin)
            return replace(job, waits=waits)
        job.close()
        os.close(waits)
        self._is_short = False
        self._spare.open()
        self._clients[client] = _Child(number, begin)
        self._selector.register(client, selectors.EVENT_READ)
        with contextlib.suppress(OSError):
            client.sendall(FORKED + number.to_bytes(4, "big"))
        return None

    def _turn_away(self, error: OSError) -> None:
        """Let a client that cannot be accepted become an ordinary process."""
        self._say(error)
        self._spare.close()
        try:
            client, _ = self._listener.accept()
            client.close()
        except OSError:
            # It still waits, and the selector would tell of it again at once.
            time.sleep(_PAUSE)
        self._spare.open()

    def _say(self, error: OSError) -> None:
        """Say once that runs are not forked, until one is forked again."""
        if not self._is_short:
            self._is_short = True
            sys.stderr.write(f"flow runs start as ordinary processes for now: the template cannot fork: {error}\n")
            sys.stderr.flush()

    def _can_fork(self, client: socket.socket) -> bool:
        if self._is_open and self._is_outdated():
            self._close()
        own = (self._listener, self._woken, self._wakes, client, *self._clients)
        return self._is_open and why_not_fork({each.fileno() for each in own}) is None

    def _fork(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        number = os.fork()
        if number == 0:
            become(parent)
            self._forget()
        return number

    def _forget(self) -> None:
        """Close, in a child, what belongs to the template."""
        self._selector.close()
        for each in (self._listener, self._woken, self._wakes, *self._clients):
            each.close()
        for child in self._clients.values():
            os.close(child.begin)
        os.close(self._worker)
        self._spare.close()
        self._clients.clear()

    def _hear(self, client: socket.socket) -> None:
        """Pass the signals of a client on to its child. A client that has gone takes its child along."""
        try:
            sent = client.recv(64)
        except OSError:
            sent = b""
        child = self._clients[client]
        for number in sent or bytes([signal.SIGKILL]):
            if bytes([number]) == BEGIN:
                # It may have been killed before it began.
                with contextlib.suppress(BrokenPipeError):
                    os.write(child.begin, BEGIN)
            else:
                child.send(number)
        if not sent:
            self._selector.unregister(client)

    def _reap(self) -> None:
        for client, child in list(self._clients.items()):
            code = child.reap()
            if code is not None:
                with contextlib.suppress(OSError):
                    client.sendall(code.to_bytes(4, "big", signed=True))
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(client)
                client.close()
                os.close(child.begin)
                del self._clients[client]

    def _close(self) -> None:
        """Take no more clients."""
        if self._is_open:
            self._is_open = False
            Path(self._listener.getsockname()).unlink(missing_ok=True)
            for each in (self._listener, self._worker):
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(each)


def _awake(_number: int, _frame: object) -> None:
    """Do nothing: the signal has woken the selector."""


def listen(place: Path) -> socket.socket:
    """Return a socket that listens at `place`, for this user only."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(place))
    finally:
        os.umask(before)
    listener.listen(64)
    return listener


def main(place: Path, modules: Sequence[str]) -> None:
    """Import what runs need, serve, and in each child do the job."""
    renewal = Renewal()
    _import(place, modules)
    try:
        # Like the folder of most flow runs, this one has no settings of Prefect.
        os.chdir(place.parent)
    except FileNotFoundError:
        # The worker has stopped meanwhile, and taken the folder along.
        return
    set_up()
    sources = read_sources()
    gc.collect()
    gc.freeze()
    renewal.note_imports()
    template = Template(listen(place), os.dup(0), renewal.is_due)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    job = template.serve()
    if job is not None:
        job.do(sources)


def _import(place: Path, modules: Sequence[str]) -> None:
    """Import what runs need. A module with which this process could not fork is named, and left out."""
    environment, folder = dict(os.environ), Path.cwd()
    preload()
    found = why_not_serve()
    if found is not None:
        sys.stderr.write(f"flow runs start as ordinary processes: what the template imports {found}\n")
        return
    for name in modules:
        found = why_not_preload(name)
        unfit = why_not_serve()
        if found or unfit:
            sys.stderr.write(f"preload: {name} {found or unfit}, and flow runs do without it\n")
        if unfit:
            # Only a new process is without the thread, and without what else was imported with it.
            os.chdir(folder)
            others = [each for each in modules if each != name]
            os.execve(sys.executable, [*_COMMAND, str(place), *others], environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
