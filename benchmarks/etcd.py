"""An etcd of several members of our own for a comparison, by its JSON over HTTP."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from benchmarks.load import MakeRequest, request_of
from benchmarks.peers import Peer, running
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng

JSON = {"content-type": "application/json"}
START_S = 60
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class EtcdCluster:
    urls: Sequence[str]
    """URLs of all members, for clients."""

    def leader(self) -> str:
        """Returns the URL of the member that leads now: writes to others go through it."""
        with httpx.Client(trust_env=False) as http:
            answers = {url: http.post(url + "/v3/maintenance/status", json={}) for url in self.urls}
        found = leader_of({url: answer.json() for url, answer in answers.items()})
        assert found is not None, "no member leads"
        return found


def leader_of(statuses: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Returns the URL of the member that all of them call their leader; None: they do not agree.

    *statuses* are the answers of `/v3/maintenance/status` by URL.
    """
    leaders = {status.get("leader") for status in statuses.values()}
    urls = [url for url, status in statuses.items() if status["header"]["member_id"] in leaders]
    return urls[0] if len(leaders) == len(urls) == 1 else None


def puts(first: int, value: str) -> MakeRequest:
    """Makes requests that put *value*, each under a key of its own from number *first* on."""
    encoded = base64.b64encode(value.encode()).decode()

    def put(number: int) -> bytes:
        key = base64.b64encode(f"{first + number:08}".encode()).decode()
        body = json.dumps({"key": key, "value": encoded}).encode()
        return request_of("POST", "/v3/kv/put", JSON, body)

    return put


@contextmanager
def etcd_cluster(folder: Path, members: int) -> Iterator[EtcdCluster]:
    """Yields *members* servers, which all must sync a write where two are. *folder* is made."""
    chosen = read_toolchain(checkout())
    assert chosen is not None
    assert chosen.etcd is not None
    folder.mkdir()
    ports = free_ports(2 * members, SystemRng())
    clients = [f"http://127.0.0.1:{port}" for port in ports[:members]]
    peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
    initial = ",".join(f"m{number}={url}" for number, url in enumerate(peers))
    with ExitStack() as all_running:
        for number, (client, peer) in enumerate(zip(clients, peers, strict=True)):
            flags = {
                "name": f"m{number}",
                "data-dir": folder / f"m{number}",
                "listen-client-urls": client,
                "advertise-client-urls": client,
                "listen-peer-urls": peer,
                "initial-advertise-peer-urls": peer,
                "initial-cluster": initial,
            }
            argv = [chosen.etcd.path, *(f"--{name}={value}" for name, value in flags.items())]
            all_running.enter_context(running(Peer(argv, folder / f"m{number}.log")))
        for client in clients:
            _wait(client, folder)
        yield EtcdCluster(clients)


def _wait(url: str, folder: Path) -> None:
    """Waits until a member is healthy: then it knows its leader."""
    with httpx.Client(trust_env=False) as http:
        for _ in range(round(START_S / LOOK_S)):
            try:
                if http.get(url + "/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            Event().wait(LOOK_S)
    raise AssertionError(f"etcd is not healthy: see its logs in {folder}")
