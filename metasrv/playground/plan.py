"""The programs of a playground, each with its command line, address and folders. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from serving.launch import program

HOST = "127.0.0.1"
KEY_PREFIX = "metasrv/"
METASRVS_MAX = 9
DATANODES_MAX = 64
FRONTENDS_MAX = 16
ZONE = "local"
"""The zone of all nodes where a playground has one zone; of several, they are `z1`, `z2` and so
on."""
Role = Literal["etcd", "metasrv", "datanode", "frontend"]
MODULES: Mapping[Role, str] = {
    "metasrv": "metasrv.server.main",
    "datanode": "dataplane.datanode.main",
    "frontend": "dataplane.frontend.main",
}
READY = "ready.json"


@dataclass(frozen=True)
class PlaygroundOptions:
    """The options of a playground."""

    data_dir: Path
    """Absolute; everything of the cluster lies below it."""
    metasrvs: int = 1
    datanodes: int = 3
    frontends: int = 0
    zones: int = 1
    """Zones over which datanodes are distributed in turn, and frontends too."""
    port: int | None = None
    """The port of the first metasrv; None: a free one."""
    etcd: tuple[str, ...] = ()
    """URLs of an etcd that runs already; empty: the playground starts its own."""
    key_prefix: str = KEY_PREFIX
    reset: bool = False
    """Delete what an earlier playground left in `data_dir`."""
    supervise: bool = False
    """Start again a program that died."""
    metasrv_flags: Mapping[str, str] = field(default_factory=dict)
    """More flags of each metasrv, by name without dashes; tests shorten times by them."""
    datanode_flags: Mapping[str, str] = field(default_factory=dict)
    """More flags of each datanode."""
    frontend_flags: Mapping[str, str] = field(default_factory=dict)
    """More flags of each frontend."""

    def faults(self) -> Iterator[str]:
        """Yields the faults of these options; none: they are right."""
        if not self.data_dir.is_absolute():
            yield "the data folder is not absolute"
        if not 0 <= self.metasrvs <= METASRVS_MAX:
            yield f"metasrvs: give 0 to {METASRVS_MAX}"
        if not 0 <= self.datanodes <= DATANODES_MAX:
            yield f"datanodes: give 0 to {DATANODES_MAX}"
        if not 0 <= self.frontends <= FRONTENDS_MAX:
            yield f"frontends: give 0 to {FRONTENDS_MAX}"
        if not 1 <= self.zones <= max(1, self.datanodes):
            yield "zones: give 1 to the number of datanodes"
        if (self.datanodes or self.frontends) and not self.metasrvs:
            yield "datanodes and frontends need a metasrv"
        if self.reset and self.etcd:
            yield "--reset deletes only the playground's own etcd: choose another --prefix"
        if not all(url.startswith("http://") for url in self.etcd):
            yield "a playground reaches etcd by http:// only"

    def zone_of(self, number: int) -> str:
        """Returns the zone of the datanode, or frontend, with that number, from 1 on."""
        return ZONE if self.zones == 1 else f"z{(number - 1) % self.zones + 1}"


@dataclass(frozen=True)
class Program:
    """One process of the cluster."""

    id: str
    role: Role
    argv: tuple[str, ...]
    """The command line that starts it, now and later."""
    url: str
    folder: Path
    ready_file: Path | None
    """The file that the program writes once it listens; None: it writes none."""
    probe: str
    """URL that answers 200 once it serves."""

    @property
    def root(self) -> Path:
        """The storage root of a datanode."""
        return self.folder / "root"


def ports_needed(settings: PlaygroundOptions) -> int:
    programs = settings.metasrvs + settings.datanodes + settings.frontends
    return programs + (0 if settings.etcd else 2)


def plan(settings: PlaygroundOptions, etcd_path: str, free_ports: Sequence[int]) -> list[Program]:
    """Returns the programs in the order in which they are started: each needs the ones before
    it."""
    ports = iter(free_ports)
    programs = [] if settings.etcd else [_etcd(settings, etcd_path, next(ports), next(ports))]
    etcd = settings.etcd or (programs[0].url,)
    first = settings.port
    for number in range(1, settings.metasrvs + 1):
        port = first if number == 1 and first is not None else next(ports)
        programs.append(_metasrv(settings, f"m-{number}", port, etcd))
    servers = [program.url for program in programs if program.role == "metasrv"]
    numbers = range(1, settings.datanodes + 1)
    nodes = [_datanode(settings, number, next(ports), servers) for number in numbers]
    numbers = range(1, settings.frontends + 1)
    frontends = [_frontend(settings, number, next(ports), servers) for number in numbers]
    return [*programs, *nodes, *frontends]


def _etcd(settings: PlaygroundOptions, path: str, client_port: int, peer_port: int) -> Program:
    folder = settings.data_dir / "etcd"
    client, peer = f"http://{HOST}:{client_port}", f"http://{HOST}:{peer_port}"
    flags = {
        "name": "playground",
        "data-dir": str(folder / "data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"playground={peer}",
    }
    return Program("etcd", "etcd", (path, *_flags(flags)), client, folder, None, client + "/health")


def _metasrv(settings: PlaygroundOptions, id: str, port: int, etcd: Sequence[str]) -> Program:
    folder = settings.data_dir / id
    flags = {
        "server-id": id,
        "listen": f"{HOST}:{port}",
        "etcd": ",".join(etcd),
        "key-prefix": settings.key_prefix,
        "data-dir": str(folder),
        "ready-file": str(folder / READY),
        "import-folders": "/",
        **settings.metasrv_flags,
    }
    return _ours("metasrv", f"http://{HOST}:{port}", folder, flags)


def _datanode(
    settings: PlaygroundOptions, number: int, port: int, servers: Sequence[str]
) -> Program:
    id = f"dn-{number}"
    folder = settings.data_dir / id
    flags = {
        "node-id": id,
        "root": str(folder / "root"),
        "shared-roots": str(settings.data_dir),
        "metasrv": ",".join(servers),
        "listen": f"{HOST}:{port}",
        "zone": settings.zone_of(number),
        "ready-file": str(folder / READY),
        **settings.datanode_flags,
    }
    return _ours("datanode", f"http://{HOST}:{port}", folder, flags)


def _frontend(
    settings: PlaygroundOptions, number: int, port: int, servers: Sequence[str]
) -> Program:
    id = f"fe-{number}"
    folder = settings.data_dir / id
    flags = {
        "frontend-id": id,
        "metasrv": ",".join(servers),
        "listen": f"{HOST}:{port}",
        "zone": settings.zone_of(number),
        "ready-file": str(folder / READY),
        **settings.frontend_flags,
    }
    return _ours("frontend", f"http://{HOST}:{port}", folder, flags)


def _ours(role: Role, url: str, folder: Path, flags: Mapping[str, str]) -> Program:
    argv = (*program(MODULES[role]), *_flags(flags))
    return Program(folder.name, role, argv, url, folder, folder / READY, url + "/readyz")


def _flags(flags: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]
