"""The command of a flow run on the warm worker: it has the template fork a child, and stands for it.

It hands its descriptors, environment and folder to the template, passes signals on, and ends as the child ends. If the
template cannot serve, it becomes an ordinary process. It imports only what is small, because each run waits for it:
`python -S -E client.py SOCKET MODULE NOTE` does what `python -m MODULE` does. It marks the file
NOTE, if it is given one, and keeps it locked for as long as the run has a process.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import sys

SECONDS_TO_FORK = 10.0
FORKED = b"f"
# Any other byte that the template reads is the number of a signal.
BEGIN = b"\0"
# What a note says as soon as the run has a process.
BEGAN = b"began"
# The signals that Prefect, a shell or an operator sends. The others have no handler in a flow run.
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(place: str, module: str, note: str = "") -> None:
    """Run a module in a child of the template that listens at `place`."""
    received: list[int] = []
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: received.append(number))
    lock = [_hold(note)] if note else []
    connection = _ask(place, module, lock)
    child = _begin(connection) if connection is not None else None
    if connection is None or child is None:
        _become_ordinary(module, received)
    else:
        _stand_for_child(connection, child, received)


def _hold(note: str) -> int:
    """Mark and lock a note, and return its descriptor. An ordinary process inherits it."""
    descriptor = -1
    try:
        descriptor = os.open(note, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except FileNotFoundError:
        pass
    if descriptor < 0 or not os.fstat(descriptor).st_nlink:
        sys.exit(f"{note} is gone: another worker has given this flow run back, because its own worker died")
    os.pwrite(descriptor, BEGAN, 0)
    os.set_inheritable(descriptor, True)
    return descriptor


def _ask(place: str, module: str, lock: list[int]) -> socket.socket | None:
    """Return the connection to a template that was given the job, or `None` if there is no template.

    Parameters:
        lock: descriptors that the child keeps open besides its input, output and error output.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(SECONDS_TO_FORK)
    umask = os.umask(0o22)
    os.umask(umask)
    given = {"module": module, "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask}  # noqa: PTH109
    request = json.dumps(given).encode()
    try:
        connection.connect(place)
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2, *lock])
        connection.sendall(request)
    except OSError:
        connection.close()
        return None
    return connection


def _begin(connection: socket.socket) -> int | None:
    """Let the child begin when the template has forked it, and return its process id; `None` if it cannot fork."""
    try:
        # The child exists and waits. Once it may begin, nothing else may do its work.
        if connection.recv(1) == FORKED:
            child = int.from_bytes(_read(connection, 4), "big")
            connection.settimeout(None)
            connection.sendall(BEGIN)
            return child
    except OSError:
        pass
    connection.close()
    return None


def _read(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("the template is gone")
        content += part
    return content


def _stand_for_child(connection: socket.socket, child: int, received: list[int]) -> None:
    """Pass signals on until the child has ended, and end in the same way."""
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    status = b""
    while len(status) < 4:
        while received:
            connection.sendall(bytes([received.pop(0)]))
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            woken.recv(64)
        if connection in ready:
            part = connection.recv(4 - len(status))
            if not part:
                # The template is gone, and the kernel has killed its child, but not what that has started.
                _kill_group(child)
                _die_by(signal.SIGKILL)
            status += part
    _end_as(int.from_bytes(status, "big", signed=True))


def _kill_group(leader: int) -> None:
    try:  # noqa: SIM105 - contextlib would have to be imported
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        pass


def _end_as(status: int) -> None:
    """End with an exit status, or by the signal that a negative status names."""
    if status < 0:
        _die_by(-status)
    os._exit(status)


def _die_by(number: int) -> None:
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


def _become_ordinary(module: str, received: list[int]) -> None:
    for number in _PASSED_ON:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if received:
        _die_by(received[0])
    os.execv(sys.executable, [sys.executable, "-m", module])


if __name__ == "__main__":
    main(*sys.argv[1:])
