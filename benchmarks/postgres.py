"""A PostgreSQL of our own for a comparison: a folder, a socket in it, and its simple protocol."""

import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

from benchmarks.peers import Peer, running

OWNER = "postgres"
"""It refuses to run as root."""
PORT = 5432  # names the socket; nothing listens on a network
_DEBIAN = "/usr/lib/postgresql"  # its programs are not on PATH there
_START_S = 60
_LOOK_S = 0.1
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

    def copy_in(self, statement: str, data: bytes) -> None:
        """`COPY ... FROM STDIN`, of text."""
        body = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        kind, length = struct.unpack("!ci", self._input.read(5))
        told = self._input.read(length - 4)
        if kind != b"G":
            raise RuntimeError(told.replace(b"\0", b" ").decode())
        self._socket.sendall(b"d" + struct.pack("!i", len(data) + 4) + data)
        self._socket.sendall(b"c" + struct.pack("!i", 4))
        self._wait()

    def close(self) -> None:
        self._input.close()
        self._socket.close()

    def _wait(self) -> None:
        """Waits until the server is ready for the next statement."""
        while True:
            kind, length = struct.unpack("!ci", self._input.read(5))
            body = self._input.read(length - 4)
            if kind == b"E":
                raise RuntimeError(body.replace(b"\0", b" ").decode())
            if kind == b"Z":
                return


def missing_postgres() -> str | None:
    """The command that installs it, in one line; None: it is here."""
    found = all(_program(name) is not None for name in ("initdb", "postgres"))
    return None if found else "PostgreSQL is not installed: apt install postgresql"


def socket_in(folder: Path, port: object = PORT) -> Path:
    """The path of the socket of the server that lives in *folder*."""
    return folder / f".s.PGSQL.{port}"


def _program(name: str) -> str | None:
    debian = (str(path) for path in sorted(Path(_DEBIAN).glob("*/bin"), reverse=True))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(debian))


@contextmanager
def postgres(folder: Path, settings: dict[str, str]) -> Iterator[Connection]:
    """Ended with everything in it when it is left. *folder* is made, and is the server's."""
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER)
    user = OWNER if os.geteuid() == 0 else None
    initdb, server = _program("initdb"), _program("postgres")
    assert initdb is not None, missing_postgres()
    assert server is not None, missing_postgres()
    data = folder / "data"
    subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", OWNER, "--no-sync"],
        check=True,
        user=user,
        stdout=subprocess.DEVNULL,
    )
    chosen = {"listen_addresses": "", "unix_socket_directories": str(folder), **settings}
    flags = [f"--{name}={value}" for name, value in chosen.items()]
    log = folder.with_name(f"{folder.name}.log")
    with running(_server([server, "-D", data, *flags], log, user)) as process:
        connection = _connection(process, socket_in(folder, chosen.get("port", PORT)), log)
        yield connection
        connection.close()


def _server(argv: Sequence[str | Path], log: Path, user: str | None) -> Peer:
    """Ends by its fast shutdown; dies by the immediate one, which leaves no shared memory."""
    return Peer(argv, log, user, ends_by=signal.SIGINT, dies_by=signal.SIGQUIT)


def _connection(process: "subprocess.Popen[bytes]", path: Path, log: Path) -> Connection:
    """Waits until the server takes connections."""
    for _ in range(round(_START_S / _LOOK_S)):
        assert process.poll() is None, f"it ended: see {log.name}"
        try:
            return Connection(path)
        except (OSError, RuntimeError, struct.error):
            Event().wait(_LOOK_S)
    raise AssertionError(f"it takes no connection: see {log.name}")


@contextmanager
def with_standbys(folder: Path, standbys: int) -> Iterator[Path]:
    """Yields the socket of a server that answers a commit once it, and each of *standbys* others on
    this machine, has flushed it to disk. Its first statement waits until they follow it."""
    names = [f"s{number}" for number in range(1, standbys + 1)]
    settings = {"synchronous_standby_names": f"{standbys} ({','.join(names)})"} if names else {}
    with postgres(folder, settings), ExitStack() as standbys_running:
        for number, name in enumerate(names, 1):
            standbys_running.enter_context(_standby(folder, name, PORT + number))
        yield socket_in(folder)


@contextmanager
def _standby(folder: Path, name: str, port: int) -> Iterator[None]:
    user = OWNER if os.geteuid() == 0 else None
    backup, server = _program("pg_basebackup"), _program("postgres")
    assert backup is not None, missing_postgres()
    assert server is not None, missing_postgres()
    data = folder / name
    primary = f"host={folder} port={PORT} user={OWNER} application_name={name}"
    copied = [backup, "-D", str(data), "-R", "-c", "fast", "--no-sync", "-d", primary]
    subprocess.run(copied, check=True, user=user, stdout=subprocess.DEVNULL)
    chosen = {"listen_addresses": "", "unix_socket_directories": folder, "port": port}
    flags = [f"--{name}={value}" for name, value in chosen.items()]
    with running(
        _server([server, "-D", data, *flags], folder.with_name(f"{folder.name}-{name}.log"), user)
    ):
        yield
