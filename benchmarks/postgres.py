"""A PostgreSQL of our own for a comparison: a folder, a socket in it, and its simple protocol."""

import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

OWNER = "postgres"
"""It refuses to run as root."""
_PORT = 5432  # names the socket; nothing listens on a network
_PATIENCE_S = 0.1
_PROTOCOL = 196_608  # 3.0


class Connection:
    """One statement at a time; what it answers is of no interest, but for errors."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._input = self._socket.makefile("rb")
        names = f"user\0{OWNER}\0database\0postgres\0\0".encode()
        self._socket.sendall(struct.pack("!ii", len(names) + 8, _PROTOCOL) + names)
        self._wait()

    def run(self, statement: str) -> None:
        body = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        self._wait()

    def close(self) -> None:
        self._input.close()
        self._socket.close()

    def _wait(self) -> None:
        """Until it is ready for the next statement."""
        while True:
            kind, length = struct.unpack("!ci", self._input.read(5))
            body = self._input.read(length - 4)
            if kind == b"E":
                raise RuntimeError(body.replace(b"\0", b" ").decode())
            if kind == b"Z":
                return


@contextmanager
def postgres(folder: Path, settings: dict[str, str]) -> Iterator[Connection]:
    """Ended with everything in it when it is left. *folder* is made, and is the server's."""
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER)
    user = OWNER if os.geteuid() == 0 else None
    initdb, server = shutil.which("initdb"), shutil.which("postgres")
    assert initdb is not None, "PostgreSQL is not installed"
    assert server is not None, "PostgreSQL is not installed"
    data = folder / "data"
    subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", OWNER, "--no-sync"],
        check=True,
        user=user,
        stdout=subprocess.DEVNULL,
    )
    chosen = {"listen_addresses": "", "unix_socket_directories": str(folder), **settings}
    flags = [f"--{name}={value}" for name, value in chosen.items()]
    with (folder.parent / "postgres.log").open("wb") as log:
        process = subprocess.Popen([server, "-D", data, *flags], user=user, stderr=log)
    try:
        while True:
            assert process.poll() is None, "it ended: see postgres.log"
            try:
                connection = Connection(folder / f".s.PGSQL.{_PORT}")
            except (OSError, RuntimeError, struct.error):
                Event().wait(_PATIENCE_S)
            else:
                break
        yield connection
        connection.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
