"""`benchmarks.schema.schema_waits`: what a transition of a schema waits for its holders.

One metasrv, one etcd, one node that acknowledges at once; 0, 1, 8 and 100 holders, all in this
process, over real HTTP: each streams the catalog and acknowledges every change of a table as soon
as it has read it. A change adds a column to a table: several transitions, and a wait after each.
The wait is as the leader counts it, in its metric, from the published transition to the last
acknowledgement. With nobody to wait for it is 0: all the rest of a change is the same.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from benchmarks.load import Connection, connected, request_of
from benchmarks.report import ROUNDS, head, line
from benchmarks.service.creates import PATH, SPEC, Place, counts, ready, stub_node
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.feed.catalog_replica import CatalogReplica
from metasrv_base.wire.frontend.feed import Update, read_line
from metasrv_base.wire.frontend.holders import (
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
)

HOLDERS = (0, 1, 8, 100)
JSON = {"content-type": "application/json"}
WAITED = "metasrv_schema_lease_wait_seconds_"
LINE_MAX = 1 << 20


@dataclass
class Holder:
    """The part of a frontend that a schema change waits for."""

    name: str
    url: str
    leader: Connection
    cluster_id: str = ""
    mirror: CatalogReplica = field(default_factory=lambda: CatalogReplica(0))
    """A replica of the tables created since it began to follow; the benchmark changes no others."""
    told: int = 0
    """Acknowledgements."""
    every_s: float = 0.0
    due: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(self) -> None:
        request = HolderRegisterRequest(
            cluster_id=None,
            holder_id=self.name,
            incarnation="i-1",
            address="http://127.0.0.1:1",
            version="0",
        )
        path = f"/internal/v1/holders/{self.name}/register"
        body = request.model_dump_json().encode()
        text = await self.leader.ask(request_of("POST", path, JSON, body), b"200")
        answer = HolderRegisterAnswer.model_validate_json(text)
        self.cluster_id, self.mirror = answer.cluster_id, CatalogReplica(answer.catalog_version)
        self.every_s = answer.acknowledge_ms / 1000

    async def follow(self) -> None:
        """Lines as they come: of a chunked body, those that are JSON."""
        where = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=LINE_MAX)
        path = f"/internal/v1/catalog/watch?from={self.mirror.version}"
        writer.write(request_of("GET", path, {}, b""))
        try:
            while True:
                text = await reader.readline()
                if not text.startswith(b'{"type":"update"'):
                    continue
                update = read_line(text)
                assert isinstance(update, Update)
                is_waited_for = self.mirror.is_waited_for(update)
                self.mirror = self.mirror.updated(update)
                if is_waited_for:
                    self.due.set()
        finally:
            writer.close()

    async def acknowledge(self) -> None:
        """Runs for ever: acknowledges when a table has changed, and several times in a lease."""
        for sequence in count(1):
            self.due.clear()
            said = AcknowledgeRequest(
                cluster_id=self.cluster_id,
                holder_id=self.name,
                incarnation="i-1",
                sequence=sequence,
                version=self.mirror.version,
            )
            path = f"/internal/v1/holders/{self.name}/acknowledge"
            body = said.model_dump_json().encode()
            await self.leader.ask(request_of("PUT", path, JSON, body), b"200")
            self.told += 1
            try:
                async with asyncio.timeout(self.every_s):
                    await self.due.wait()
            except TimeoutError:
                continue

    async def sign_off(self) -> None:
        path = f"/internal/v1/holders/{self.name}?incarnation=i-1"
        async with connected(self.url) as leader:
            await leader.ask(request_of("DELETE", path, {}, b""), b"200")


@asynccontextmanager
async def holding(url: str, number: int) -> AsyncIterator[list[Holder]]:
    """Yields *number* holders that follow the catalog."""
    async with AsyncExitStack() as stack:
        found = [
            Holder(f"fe-{one}", url, await stack.enter_async_context(connected(url)))
            for one in range(number)
        ]
        for holder in found:
            await holder.register()
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(one.follow()) for one in found]
            work += [tasks.create_task(one.acknowledge()) for one in found]
            yield found
            for task in work:
                task.cancel()
        for holder in found:
            await holder.sign_off()


@dataclass(frozen=True, slots=True)
class Round:
    """Costs of one change with a given number of holders."""

    change_ms: float
    wait_ms: float
    """Duration of the wait of one transition."""
    waits: float
    """Transitions of one change."""
    writes: float
    """Transactions that etcd applied, of one change."""
    told: float
    """Acknowledgements of each holder, of one change."""


async def one_round(place: Place, holders: int, changes: int, names: "count[int]") -> Round:
    loop = asyncio.get_running_loop()
    async with (
        holding(place.metasrv, holders) as found,
        httpx.AsyncClient(trust_env=False, base_url=place.metasrv, timeout=60) as http,
    ):
        tables = [f"s_{next(names)}" for _ in range(changes)]
        for name in tables:
            body = {"name": name, **SPEC}
            (await http.post(PATH, json=body, headers={"prefer": "wait=30"})).raise_for_status()
        before, waited = await counts(place), await waits(http)
        told = sum(one.told for one in found)
        spent = []
        for name in tables:
            began = loop.time()
            await add_column(http, name)
            spent.append((loop.time() - began) * 1000)
        after, done = await counts(place), await waits(http)
        times, seconds = done[0] - waited[0], done[1] - waited[1]
        writes = after["etcd write transactions"] - before["etcd write transactions"]
        acknowledgements = sum(one.told for one in found) - told
    return Round(
        change_ms=statistics.median(spent),
        wait_ms=seconds * 1000 / times,
        waits=times / changes,
        writes=writes / changes,
        told=acknowledgements / changes / max(1, holders),
    )


async def add_column(http: httpx.AsyncClient, name: str) -> None:
    column = {"name": "note", "type": "string", "nullable": True}
    body = {"operations": [{"op": "add_column", "column": column}]}
    answer = await http.post(f"{PATH}/{name}/alter", json=body, headers={"prefer": "wait=30"})
    assert answer.status_code == 200, answer.text


async def waits(http: httpx.AsyncClient) -> tuple[float, float]:
    """Returns the number of waits so far and their sum in seconds."""
    text = (await http.get("/metrics")).text
    found = [re.search(f"^{WAITED}{part} (.*)$", text, re.M) for part in ("count", "sum")]
    times, seconds = (float(match[1]) if match else 0.0 for match in found)
    return times, seconds


async def measure(changes: int) -> None:
    head(f"python -m benchmarks.schema.schema_waits --changes {changes}")
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(settings) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
            await ready(place)
            names = count()
            await one_round(place, 1, changes, names)  # warm
            rounds: dict[int, list[Round]] = {number: [] for number in HOLDERS}
            for _ in range(ROUNDS):
                for number in HOLDERS:
                    rounds[number].append(await one_round(place, number, changes, names))
    for number, found in rounds.items():
        who = f"{number} holder{'s' * (number != 1)}"
        line(f"{who}: wait of one transition", [one.wait_ms for one in found], "ms", 2)
        added = f"{who}: a column added, {found[0].waits:.0f} waits"
        line(added, [one.change_ms for one in found], "ms", 1)
        line(f"{who}: write transactions of etcd per change", [r.writes for r in found], "", 1)
        line(f"{who}: acknowledgements of each per change", [r.told for r in found], "", 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=20, help="of each round")
    asyncio.run(measure(parser.parse_args().changes))
