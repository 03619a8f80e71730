"""`benchmarks.schema.watchers`: a thousand watchers of events at one server.

One metasrv, one etcd, one node that does nothing, and the TCP connections of another process. A
table is altered again and again, with no watcher and with all of them. Printed: the time from the
answer to a change until the last watcher has its version (at most a second is asked), processor
time of the server, and the requests that it sent to etcd for each change, which must be as many.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvloop

from benchmarks.report import head, line, resident_mib
from benchmarks.service.creates import PATH, Place, cpu_ms, ready, stub_node
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.clock import SystemClock
from metasrv_base.wire.events.events import PATH as EVENTS
from serving.open_files import raise_open_files

ROUNDS = 5
CHANGES = 10
"""The changes of one round."""
PAUSE_S = 0.2
PATIENCE_S = 60
LATE_MS = 1_000
VERSION = re.compile(rb"id: (\d+)\nevent: version\n")
STORE = re.compile(r"^metasrv_etcd_request_duration_seconds_count\{[^}]*\} (\S+)$", re.MULTILINE)
KEPT_BYTES = 64  # of what came last: a head may be cut


class Watching(asyncio.Protocol):
    """One connection, in the process of the watchers."""

    def __init__(self, everybody: "Everybody") -> None:
        self._everybody = everybody
        self._tail = b""
        self._is_up = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.write(f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        text = self._tail + data
        if not self._is_up and b"\nid: " in text:
            self._is_up = True
            self._everybody.came()
        end = 0
        for found in VERSION.finditer(text):
            self._everybody.told(int(found[1]))
            end = found.end()
        self._tail = text[max(end, len(text) - KEPT_BYTES) :]


class Everybody:
    """All connections: says on stdout when all are up, and when all have a version."""

    def __init__(self, count: int) -> None:
        self._clock = SystemClock()
        self._count = count
        self._up = 0
        self._told: dict[int, list[int]] = {}
        """Version -> the number of watchers that have it, and when the first had it."""

    def came(self) -> None:
        self._up += 1
        if self._up == self._count:
            print(json.dumps({"up": self._up}), flush=True)

    def told(self, version: int) -> None:
        now = self._clock.mono_ms()
        told = self._told.setdefault(version, [0, now])
        told[0] += 1
        if told[0] == self._count:
            print(json.dumps({"version": version, "first": told[1], "last": now}), flush=True)


async def watch(port: int, count: int) -> None:
    """Connects and listens until it is ended."""
    raise_open_files()
    everybody, loop = Everybody(count), asyncio.get_running_loop()
    for _ in range(count):
        await loop.create_connection(lambda: Watching(everybody), "127.0.0.1", port)
    await asyncio.Event().wait()


@asynccontextmanager
async def watchers(url: str, count: int) -> AsyncIterator[asyncio.StreamReader]:
    """The output of the process of the watchers, once all are connected."""
    words = ["-m", "benchmarks.schema.watchers", "--watch", url.rpartition(":")[2], str(count)]
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert json.loads(await child.stdout.readline()) == {"up": count}
        yield child.stdout
    finally:
        child.terminate()
        await child.wait()


async def store_requests(http: httpx.AsyncClient) -> int:
    return int(sum(map(float, STORE.findall((await http.get("/metrics")).text))))


async def changed(
    http: httpx.AsyncClient, number: int, told: asyncio.StreamReader | None
) -> int | None:
    """Alters the table. Returns ms from the answer until the last watcher has its version."""
    body = {"operations": [{"op": "set_options", "options": {"comment": f"change {number}"}}]}
    answer = await http.post(f"{PATH}/first/alter", json=body, headers={"prefer": "wait=30"})
    assert answer.status_code == 200, answer.text
    answered, version = SystemClock().mono_ms(), int(answer.headers["catalog-version"])
    if told is None:
        return None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            said = json.loads(await told.readline())
            if said["version"] == version:
                return max(0, int(said["last"]) - answered)


async def rounds(place: Place, told: asyncio.StreamReader | None) -> list[float]:
    """Prints what the changes cost. Returns the ms of each until the last watcher has it."""
    late: list[float] = []
    used: list[float] = []
    asked: list[float] = []
    async with httpx.AsyncClient(base_url=place.metasrv, trust_env=False, timeout=60) as http:
        for number in range(ROUNDS):
            before, calls = cpu_ms(place.pid), await store_requests(http)
            for change in range(CHANGES):
                ms = await changed(http, number * CHANGES + change, told)
                late += [] if ms is None else [float(ms)]
            used.append((cpu_ms(place.pid) - before) / CHANGES)
            asked.append((await store_requests(http) - calls) / CHANGES)
            await asyncio.sleep(PAUSE_S)
    line("  processor of the server for a change", used, "ms", 1)
    line("  requests to etcd for a change", asked, "", 2)
    return late


async def measure(count: int) -> bool:
    """Whether every watcher had every version in time."""
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(settings) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
            await ready(place)
            head(f"python -m benchmarks.schema.watchers --watchers {count}", ROUNDS)
            print("no watcher")
            await rounds(place, None)
            before = resident_mib(place.pid)
            async with watchers(server.url, count) as told:
                print(f"{count} watchers")
                late = await rounds(place, told)
                taken = resident_mib(place.pid) - before
            line("  until the last watcher has a version", late, "ms", 0)
            line("  memory of the server for a watcher", [taken * 1024 / count], "KiB", 1)
            return max(late) <= LATE_MS


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=1_000)
    parser.add_argument("--watch", type=int, nargs=2, metavar=("PORT", "COUNT"), help="a child")
    given = parser.parse_args(argv)
    if given.watch:
        uvloop.run(watch(*given.watch))
        return 0
    return 0 if asyncio.run(measure(given.watchers)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
