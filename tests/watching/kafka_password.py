"""A server of Kafka that knows no password, and keeps what clients say who they are."""

import socketserver
import struct
import threading
from typing import ClassVar, cast

HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
UNSUPPORTED_VERSION, AUTHENTICATION_FAILED = 35, 58


class _Client(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while head := self.rfile.read(4):
            request = self.rfile.read(int.from_bytes(head))
            kind, version, number = struct.unpack(">hhi", request[:8])
            answer = self._answer(kind, version, request)
            self.wfile.write(struct.pack(">ii", len(answer) + 4, number) + answer)

    def _answer(self, kind: int, version: int, request: bytes) -> bytes:
        if kind == API_VERSIONS:
            known = b"".join(struct.pack(">hhh", each, 0, 1) for each in (HANDSHAKE, AUTHENTICATE))
            known += struct.pack(">hhh", API_VERSIONS, 0, 0)
            return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, 3) + known
        if kind == HANDSHAKE:
            return struct.pack(">hih", 0, 1, 5) + b"PLAIN"
        cast(PasswordServer, self.server).told.append(request.rpartition(b"\0me\0")[2].decode(errors="replace"))
        return struct.pack(">hh", AUTHENTICATION_FAILED, 2) + b"no" + struct.pack(">i", 0) + bytes(8 if version else 0)


class PasswordServer(socketserver.ThreadingTCPServer):
    """Refuses each password of the user "me".

    Attributes:
        told: the passwords that it heard.
    """

    daemon_threads: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Client)
        self.told: list[str] = []
        self.address = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
