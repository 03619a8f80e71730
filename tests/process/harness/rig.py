"""A real cluster under test: its processes, its keys as etcdctl shows them, and their history."""

import asyncio
import base64
import json
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from keys.store.etcd import EtcdKv
from keys.store.kv import Watched
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.restarts import restarts
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.connections import connect_async
from metasrv_base.clock import SystemClock
from tests.keys.model.plain import plain
from tests.procedures.harness.agree import Agreement, history_of

# A leader is missed after 2 s, a datanode after some 3 s; all relations of the defaults hold.
QUICK = {
    "leader-ttl-ms": "2000",
    "keep-alive-ms": "600",
    "store-deadline-ms": "1000",
    "heartbeat-ms": "400",
    "region-lease-ms": "2000",
    "phi-pause-ms": "1500",
}
# Nobody is given up for being slow: for tests in which nobody dies.
CALM = {
    **QUICK,
    "leader-ttl-ms": "30000",
    "region-lease-ms": "30000",
    "schema-lease-ms": "40000",
    "phi-pause-ms": "60000",
}
LOOK_MS = 50
LIMIT_S = 240.0  # what must come comes within seconds; a machine that has much to do takes longer

Spec = dict[str, Any]


def table_spec(name: str, regions: int = 2) -> Spec:
    """A table of ids and words, by hash of the id."""
    return {
        "name": name,
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "word", "type": "string", "nullable": True},
        ],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": regions},
    }


@dataclass(slots=True)
class Key:
    """One key as etcdctl prints it."""

    mod_revision: int
    value: Any


class Rig:
    """One playground. Times are of this process's clock, in ms."""

    def __init__(self, playground: Playground, http: httpx.AsyncClient) -> None:
        self.playground = playground
        self.http = http
        self.clock = SystemClock()

    @property
    def urls(self) -> tuple[str, ...]:
        return self.playground.metasrv_urls

    @property
    def servers(self) -> list[str]:
        """Ids of the metasrvs."""
        return [one.id for one in self.playground.programs if one.role == "metasrv"]

    @property
    def prefix(self) -> str:
        return self.playground.settings.key_prefix

    def url(self, id: str) -> str:
        return self.playground.children[id].program.url

    def client(self, *urls: str, patience_ms: int = 60_000) -> AsyncClient:
        return connect_async(urls or self.urls, patience_ms=patience_ms)

    # Processes ---------------------------------------------------------------------------------

    async def until(self, seen: Callable[[], Awaitable[Any]], limit_s: float = LIMIT_S) -> Any:
        """Calls *seen* again and again; returns its result once that is true."""
        end = self.clock.mono_ms() + limit_s * 1000
        while True:
            if found := await seen():
                return found
            assert self.clock.mono_ms() < end, f"not within {limit_s} s: {seen}"
            await self.clock.sleep_ms(LOOK_MS)

    async def leader_of_etcd(self) -> str | None:
        """Returns the name of the leader in the election key."""
        found = await self.keys("__election/leader")
        return str(found["__election/leader"].value["server"]) if found else None

    async def leader(self, other_than: str = "", limit_s: float = LIMIT_S) -> str:
        """A server that says itself that it leads."""

        async def look() -> str | None:
            for id in self.servers:
                if id != other_than and await self.leads(id):
                    return id
            return None

        return str(await self.until(look, limit_s))

    async def leads(self, id: str) -> bool:
        document = await self.ask(self.url(id) + "/v1/cluster")
        leader = document.get("leader") if document else None
        return leader is not None and leader["id"] == id and leader["term"] is not None

    async def all_pass_on(self) -> bool:
        """Whether every server answers what the leader alone can, itself or by passing it on.

        (`/v1/cluster` tells who leads by the store, before a server has heard of it.)
        """
        answers = [await self.ask(self.url(id) + "/v1/locks") for id in self.servers]
        return None not in answers

    async def frontends_serve(self) -> bool:
        """Whether all of them hold a schema lease. One whose lease ended is started again."""
        answers = [
            await self.ask(url + "/readyz") for url in self.playground.frontend_urls.values()
        ]
        return None not in answers

    async def told(self, url: str, **params: str) -> Any:
        """The document, asked for again until there is one: 503 says that nothing was done."""
        return await self.until(partial(self.ask, url, **params))

    async def ask(self, url: str, **params: str) -> Any:
        """The document; None for no answer, or one that is no 200."""
        try:
            answer = await self.http.get(url, params=params, timeout=2.0)
        except httpx.TransportError:
            return None
        return answer.json() if answer.status_code == 200 else None

    async def kill(self, id: str, number: signal.Signals = signal.SIGKILL) -> None:
        await self.playground.kill(id, number)

    async def restart(self, id: str) -> None:
        await self.playground.restart(id)

    def log_of(self, id: str) -> str:
        return (self.playground.settings.data_dir / "logs" / f"{id}.log").read_text()

    # Keys --------------------------------------------------------------------------------------

    async def etcdctl(self, *words: str) -> Any:
        """Its JSON. The real binary, because a person would use it."""
        chosen = read_toolchain(checkout())
        path = chosen.etcdctl if chosen is not None else shutil.which("etcdctl")
        assert path, "there is no etcdctl"
        process = await asyncio.create_subprocess_exec(
            *(path, "--endpoints", ",".join(self.playground.etcd_urls)),
            *(*words, "--write-out=json"),
            env={"ETCDCTL_API": "3"},
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(told)

    async def keys(self, prefix: str = "", revision: int = 0) -> dict[str, Key]:
        """By name without the cluster's prefix; as they stood at *revision*, if given."""
        at = (f"--rev={revision}",) if revision else ()
        found = await self.etcdctl("get", "--prefix", self.prefix + prefix, *at)
        keys = {}
        for kv in found.get("kvs", []):
            key = base64.b64decode(kv["key"]).removeprefix(self.prefix.encode())
            value = plain(key, base64.b64decode(kv["value"]))
            keys[key.decode()] = Key(kv["mod_revision"], value)
        return keys

    async def records(self) -> dict[str, Any]:
        """Procedures that are not over, by id."""
        found = await self.keys("__procedure/")
        return {key.rpartition("/")[2]: one.value for key, one in found.items()}

    @asynccontextmanager
    async def store(self) -> AsyncIterator[EtcdKv]:
        """A client of our own, for what a watch alone can tell."""
        endpoints = [url.removeprefix("http://") for url in self.playground.etcd_urls]
        kv = await EtcdKv.connect(endpoints, self.prefix.encode())
        try:
            yield kv
        finally:
            await kv.close()

    async def revision(self) -> int:
        """Returns the revision of the store now."""
        found = await self.etcdctl("get", "--limit=1", self.prefix + "__cluster")
        return int(found["header"]["revision"])

    async def history(self) -> list[Watched]:
        """Every revision of the store since it began."""
        found: list[Watched] = []
        newest = max(key.mod_revision for key in (await self.keys()).values())
        async with (
            self.store() as kv,
            aclosing(kv.watch(b"", b"\0", start_revision=1)) as watch,
        ):
            async for watched in watch:
                if watched.events:
                    found.append(watched)
                if watched.revision >= newest:
                    break
        return found

    async def agreement(self) -> Agreement:
        """The independent checker's word on every revision so far."""
        return history_of(await self.history())

    async def check(self, *flags: str) -> tuple[str, ...]:
        """Returns the faults that `metasrv check` reports, a line each. *flags*: more of them."""
        document = self.playground.settings.data_dir / "playground.json"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "metasrv.cli.main", "check", "--deep", *flags),
            *("--playground", str(document)),
            cwd=checkout(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await process.communicate()
        return () if process.returncode == 0 else tuple(told.decode().splitlines())

    async def converged(self, limit_s: float = LIMIT_S) -> None:
        """No procedure is left, and all regions of living tables are open."""

        async def look() -> bool:
            routes = (await self.keys("__table_route/")).values()
            regions = [r for route in routes for r in route.value["region_routes"]]
            is_open = all(r["state"] == "open" and not r["borrows"] for r in regions)
            return is_open and not await self.records()

        await self.until(look, limit_s)


@asynccontextmanager
async def running(  # noqa: PLR0913  # each is an option of a playground
    folder: Path,
    *,
    metasrvs: int = 1,
    datanodes: int = 2,
    zones: int = 1,
    flags: Mapping[str, str] | None = None,
    etcd: Sequence[str] = (),
) -> AsyncIterator[Rig]:
    """*flags* of the metasrvs; default: QUICK. *etcd*: URLs of one that is there."""
    settings = PlaygroundOptions(
        folder / "playground",
        metasrvs=metasrvs,
        datanodes=datanodes,
        frontends=1,
        zones=zones,
        etcd=tuple(etcd),
        metasrv_flags=QUICK if flags is None else flags,
    )
    async with (
        Playground(settings) as playground,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        rig = Rig(playground, http)
        await rig.until(rig.all_pass_on)
        async with _started_again(playground):
            yield rig


@asynccontextmanager
async def _started_again(playground: Playground) -> AsyncIterator[None]:
    """Starts frontends whose lease has ended again, as the program of a playground does."""
    async with asyncio.TaskGroup() as tasks:
        keepers = [tasks.create_task(restarts(playground, id)) for id in playground.frontend_urls]
        yield
        for keeper in keepers:
            keeper.cancel()
