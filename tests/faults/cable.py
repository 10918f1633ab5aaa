"""A cable between a client and a server, which can be cut."""

import select
import socket
import threading
from contextlib import suppress

CHUNK = 65536


class Cable:
    """Passes connections on to a server of this machine.

    Attributes:
        port: where clients connect.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections in the middle of whatever is said on them. New ones are accepted."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._server)) as server:
            self._sockets |= {client, server}
            try:
                while self._pump(client, server):
                    pass
            finally:
                self._sockets -= {client, server}

    def _pump(self, client: socket.socket, server: socket.socket) -> bool:
        for ready in select.select([client, server], [], [])[0]:
            data = ready.recv(CHUNK)
            if not data:
                return False
            (server if ready is client else client).sendall(data)
        return True
