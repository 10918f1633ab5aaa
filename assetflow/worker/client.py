"""The command of a flow run on the warm worker: it has the template fork a child, and stands for it.

It hands its descriptors, environment and folder to the template, passes signals on, and ends as the child ends. If the
template cannot serve, it becomes an ordinary process. It imports only what is small, because each run waits for it:
`python -S -E client.py SOCKET MODULE NOTE` does what `python -m MODULE` does. It marks the file
NOTE, if it is given one, and keeps it locked for as long as the run has a process.

`python -S -E client.py --command NOTE COMMAND...` marks and locks the note, and becomes the command.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import stat
import sys

SECONDS_TO_FORK = 10.0
FORKED = b"f"
# Any other byte that the template reads is the number of a signal.
BEGIN = b"\0"
# What a note says as soon as the run has a process. That of a command follows.
BEGAN = b"began"
COMMAND = "--command"
# As a shell ends. Prefect explains these.
_CANNOT_BE_EXECUTED = 126
_NOT_FOUND = 127
_OUTPUT = (1, 2)
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


def become(note: str, command: list[str]) -> None:
    """Mark and lock a note, and become a command.

    The lock passes to what the command starts. Some commands close it, such as sudo, so the note tells the process too.
    """
    descriptor = _hold(note)
    os.pwrite(descriptor, BEGAN + b" " + mark_of(os.getpid()), 0)
    # Python ignores them, and what is ignored stays so.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"the command of this flow run does not start: {command[0]}: {error.strerror}\n")
        sys.exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_BE_EXECUTED)


def mark_of(process: int) -> bytes:
    """Return what no other process of this machine has or had: its number and its start; empty if it has ended.

    Where the start cannot be seen, as on macOS, it is the number, which another process may get.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
            state = file.read().rpartition(b")")[2].split()
    except OSError:
        return b"%d" % process if _exists(process) else b""
    return b"" if state[0] == b"Z" else b"%d %s" % (process, state[19])


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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
            child = int.from_bytes(read_exactly(connection, 4), "big")
            connection.settimeout(None)
            connection.sendall(BEGIN)
            return child
    except OSError:
        pass
    connection.close()
    return None


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes that the other end sends. Raise ConnectionError if it is gone before."""
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("the other end is gone")
        content += part
    return content


def _stand_for_child(connection: socket.socket, child: int, received: list[int]) -> None:
    """Pass signals on until the child has ended, and end in the same way."""
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    worker, output = _watch_output()
    status = b""
    while len(status) < 4:
        while received:
            connection.sendall(bytes([received.pop(0)]))
        ready, _, _ = select.select([connection, woken, *(worker or output)], [], [])
        if woken in ready:
            woken.recv(64)
        if worker and worker[0] in ready:
            worker = []
        elif not worker:
            _lose(output, ready)
        if connection in ready:
            part = connection.recv(4 - len(status))
            if not part:
                # The template is gone, and the kernel has killed its child, but not what that has started.
                _kill_group(child)
                _die_by(signal.SIGKILL)
            status += part
    _end_as(int.from_bytes(status, "big", signed=True))


def _watch_output() -> tuple[list[int], list[int]]:
    """Hold the output open. Return what tells that the worker, which reads it, has died, and the output to read then.

    If nobody read it, the next line of a log would end the flow run.
    """
    parent = os.getppid()
    if not all(stat.S_ISFIFO(os.fstat(each).st_mode) for each in _OUTPUT):
        return [], []
    looked = select.poll()
    for each in _OUTPUT:
        looked.register(each, 0)
    is_read = not any(found & select.POLLERR for _, found in looked.poll(0))
    try:
        worker = [os.pidfd_open(parent)] if is_read else []
    except ProcessLookupError:
        worker = []
    except OSError:
        # The kernel is too old, or a sandbox forbids it.
        return [], []
    return worker, [os.open(f"/proc/self/fd/{each}", os.O_RDONLY | os.O_NONBLOCK) for each in _OUTPUT]


def _lose(output: list[int], ready: list[socket.socket | int]) -> None:
    for each in output:
        if each in ready:
            try:  # noqa: SIM105 - contextlib would have to be imported
                os.read(each, 65536)
            except BlockingIOError:
                pass


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
    if sys.argv[1] == COMMAND:
        become(sys.argv[2], sys.argv[3:])
    else:
        main(*sys.argv[1:])
