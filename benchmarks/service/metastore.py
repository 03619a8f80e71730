"""A Hive Metastore on a PostgreSQL of our own, for a comparison, and its call to create a table.

The jars are those that ship with pyspark; the JDBC driver is Debian's libpostgresql-jdbc-java.
Requests are Thrift's binary protocol in frames, written here: one call needs no library.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen
from threading import Event
from xml.sax.saxutils import escape

from benchmarks.peers import Peer, running
from benchmarks.postgres import missing_postgres, postgres
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng

DRIVERS = (Path("/usr/share/java/postgresql.jar"),)
CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
OPENED = ("java.lang", "java.net", "java.util")
CONNECTIONS = 32
START_S = 90
LOOK_S = 0.2

_CALL = 0x80010001
_STOP, _BOOL, _I32, _STRING, _STRUCT, _MAP, _LIST = 0, 2, 8, 11, 12, 13, 15


def missing() -> str | None:
    """Names, in one line, a thing that `metastore` needs and this machine lacks. None: it has all
    that `metastore` needs."""
    if (fix := missing_postgres()) is not None:
        return fix
    if not _jars().is_dir():
        return "Hive: pyspark is not installed"
    if not any(path.exists() for path in DRIVERS):
        return "Hive: no JDBC driver: apt install libpostgresql-jdbc-java"
    toolchain = read_toolchain(checkout())
    return None if toolchain is not None and toolchain.java is not None else "Hive: no Java"


@contextmanager
def metastore(folder: Path) -> Iterator[int]:
    """Runs a metastore and yields its port on 127.0.0.1. *folder* exists and any user may enter
    it."""
    port, database = free_ports(2, SystemRng())
    listening = {"listen_addresses": "127.0.0.1", "port": str(database), "max_connections": "200"}
    with postgres(folder / "postgres", listening) as server:
        server.run("CREATE DATABASE hive")
        configuration = folder / "conf"
        configuration.mkdir()
        _write(configuration / "hive-site.xml", _properties(folder, database))
        hive = Peer(_command(configuration, port), folder / "hive.log", cwd=folder)
        with running(hive) as process:
            _wait(process, port)
            yield port


def create_table(name: str, number: int) -> bytes:
    """The framed request for an external table of one bigint column in `default`."""
    columns = _list(_STRUCT, [_text(1, "id") + _text(2, "bigint") + b"\0"])
    serde = _text(2, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe") + b"\0"
    storage = (
        _field(_LIST, 1, columns)
        + _text(3, "org.apache.hadoop.mapred.TextInputFormat")
        + _text(4, "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat")
        + _field(_BOOL, 5, b"\0")
        + _field(_I32, 6, struct.pack("!i", 0))
        + _field(_STRUCT, 7, serde)
        + b"\0"
    )
    table = (
        _text(1, name)
        + _text(2, "default")
        + _text(3, "bench")
        + _field(_STRUCT, 7, storage)
        + _field(_LIST, 8, _list(_STRUCT, []))
        + _field(_MAP, 9, struct.pack("!bbi", _STRING, _STRING, 0))
        + _text(12, "MANAGED_TABLE")
        + b"\0"
    )
    head = struct.pack("!I", _CALL) + _string("create_table") + struct.pack("!i", number)
    body = head + _field(_STRUCT, 1, table) + b"\0"
    return struct.pack("!i", len(body)) + body


def must_be_done(answer: bytes) -> None:
    """Asserts that the answer, without its frame, is an empty result: no exception in it."""
    (length,) = struct.unpack_from("!i", answer, 4)
    result = answer[8 + length + 4 :]
    assert answer[3] == 2, answer  # a reply, no exception of Thrift's own
    assert result == b"\0", answer


def _jars() -> Path:
    spec = find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec and spec.origin else Path("nowhere")


def _properties(folder: Path, database: int) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{database}/hive",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "postgres",
        "javax.jdo.option.ConnectionPassword": "none",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPool.maxPoolSize": str(CONNECTIONS),
        "hive.metastore.schema.verification": "false",
        "hive.metastore.thrift.framed.transport.enabled": "true",
        "hive.metastore.uris": "",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",
    }


def _write(path: Path, properties: dict[str, str]) -> None:
    rows = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    )
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")


def _command(configuration: Path, port: int) -> list[str]:
    toolchain = read_toolchain(checkout())
    assert toolchain is not None
    assert toolchain.java is not None
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    driver = next(path for path in DRIVERS if path.exists())
    path = f"{configuration}:{_jars()}/*:{driver}"
    return [toolchain.java.path, *opened, "-cp", path, CLASS, "-p", str(port)]


def _wait(process: Popen[bytes], port: int) -> None:
    for _ in range(round(START_S / LOOK_S)):
        assert process.poll() is None, "it ended: see hive.log"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            Event().wait(LOOK_S)
        else:
            return
    raise AssertionError("it does not listen: see hive.log")


def _field(kind: int, number: int, value: bytes) -> bytes:
    return struct.pack("!bh", kind, number) + value


def _string(text: str) -> bytes:
    return struct.pack("!i", len(text)) + text.encode()


def _text(number: int, text: str) -> bytes:
    return _field(_STRING, number, _string(text))


def _list(kind: int, items: list[bytes]) -> bytes:
    return struct.pack("!bi", kind, len(items)) + b"".join(items)
