"""`benchmarks.schema.foreground`: what statements take while an index is filled beside them.

A cluster as users have it: one metasrv with Spark, two nodes, two frontends, a table with rows.
Upserts and reads of single rows, in turn, are due at a fixed rate whether or not earlier ones are
answered, and are timed from when they were due. Round by round: with nothing beside them; with the
index there and nothing beside, which is what its upkeep alone costs; with an index that is filled
as fast as it goes; at a rate that an operator sets; and paced by itself, by what the frontends
report. A reorg counts from its first row until it is over, or for as long as a
phase lasts: then it is cancelled. No statement may be refused.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import orjson
import pyarrow as pa

from benchmarks.load import connected, request_of
from benchmarks.report import head, line, ratio
from benchmarks.schema.schema_waits import JSON
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv_base.wire.api.procedures import ProcedureBody

ROUNDS = 3
BATCH_ROWS = 20_000
CONNECTIONS = 16  # to each frontend; a statement that is due waits for one
LOOK_S = 0.1
OVER_S = 300.0  # for a reorg to begin, and to be over
NOTHING, KEPT = "nothing beside", "the index is there"
WHOLE, SET, PACED = "as fast as it goes", "at a set rate", "paced"
NO_LIMIT = 1_000_000_000  # an operator's rate: nothing else paces it
TABLES = "/v1/catalogs/main/schemas/public/tables"
INDEXES = f"{TABLES}/t/indexes"
SPEC = {
    "name": "t",
    "columns": [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "tenant", "type": "int64", "nullable": False},
        {"name": "tag", "type": "string", "nullable": False},
    ],
    "primary_key": ["id"],
    "partition": {"by": "hash", "columns": ["id"], "count": 4},
}


@dataclass(frozen=True, slots=True)
class Asked:
    rows: int
    seconds: float
    """Length of each phase."""
    statements_per_s: int
    rows_per_s: int
    """The operator's bound on the reorg, in rows/s."""


@dataclass
class Phase:
    """Latencies of the statements of one phase, and the rows/s of the reorg beside them."""

    taken_ms: list[float] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    read_per_s: float = 0.0

    def percentile_ms(self, percent: int) -> float:
        return statistics.quantiles(self.taken_ms, n=100, method="inclusive")[percent - 1]


@dataclass
class Statements:
    """An open loop over all frontends, for ever. Those answered now count for `phase`."""

    urls: list[str]
    asked: Asked
    phase: Phase = field(default_factory=Phase)
    _due: "asyncio.Queue[tuple[float, bytes]]" = field(default_factory=asyncio.Queue)

    async def run(self) -> None:
        loop, chosen = asyncio.get_running_loop(), random.Random(1)
        began = loop.time()
        async with asyncio.TaskGroup() as tasks:
            for url in self.urls * CONNECTIONS:
                tasks.create_task(self._send(url))
            for number in count():
                due = began + number / self.asked.statements_per_s
                await asyncio.sleep(due - loop.time())
                self._due.put_nowait((due, statement(number, chosen.randrange(self.asked.rows))))

    async def _send(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        async with connected(url) as frontend:
            while True:
                due, request = await self._due.get()
                status, body = await frontend.exchange(request)
                self.phase.taken_ms.append((loop.time() - due) * 1000)
                if status != b"200":
                    self.phase.refused.append(body)


def statement(number: int, key: int) -> bytes:
    rows = "/v1/tables/main/public/t/rows"
    if number % 2:
        return request_of("GET", f"{rows}?key={key}", {}, b"")
    row = {"id": key, "tenant": key % 1000, "tag": f"again {number}"}
    return request_of("POST", rows, JSON, orjson.dumps({"op": "upsert", "rows": [row]}))


@dataclass
class Reorg:
    """An index on its way."""

    http: httpx.AsyncClient
    procedure: str

    @classmethod
    async def begun(cls, http: httpx.AsyncClient, rows_per_s: int | None) -> "Reorg":
        body = {"name": "by_tag", "columns": ["tag"]}
        answer = await http.post(INDEXES, json=body, headers={"prefer": "wait=0"})
        assert answer.status_code == 202, answer.text
        reorg = cls(http, answer.json()["id"])
        if rows_per_s is not None:
            await reorg.steer("throttle", {"rows_per_s": rows_per_s})
        return reorg

    async def seen(self) -> ProcedureBody:
        answer = await self.http.get(f"/v1/procedures/{self.procedure}")
        return ProcedureBody.model_validate_json(answer.content)

    async def steer(self, action: str, body: object = None) -> None:
        path = f"/v1/procedures/{self.procedure}/{action}"
        answer = await self.http.post(path, json=body)
        assert answer.status_code in (200, 202), answer.text

    async def read(self) -> int:
        """Rows so far; of one that is over, all."""
        seen = await self.seen()
        if seen.done:
            return int((seen.result or {}).get("rows", 0))
        return seen.progress.done if seen.progress is not None and seen.step == "fill" else 0

    async def over(self) -> None:
        """Waits until the reorg is done or undone and the table is as before."""
        seen = await self.seen()
        if not seen.done and seen.cancelable:
            await self.steer("cancel")
        await until(self.is_done)
        if (await self.seen()).state == "succeeded":
            answer = await self.http.delete(f"{INDEXES}/by_tag", headers={"prefer": "wait=60"})
            assert answer.status_code == 204, answer.text

    async def is_done(self) -> bool:
        return (await self.seen()).done

    async def has_begun(self) -> bool:
        return await self.read() > 0


async def until(told: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(OVER_S):
        while True:
            if await told():
                return
            await asyncio.sleep(LOOK_S)


async def measured(
    statements: Statements, http: httpx.AsyncClient, rows_per_s: int | None
) -> Phase:
    """Beside one reorg. *rows_per_s*: an operator's; None: nobody says."""
    loop = asyncio.get_running_loop()
    reorg = await Reorg.begun(http, rows_per_s)
    await until(reorg.has_begun)
    phase = statements.phase = Phase()
    began, read = loop.time(), await reorg.read()

    async def has_lasted() -> bool:
        return loop.time() - began >= statements.asked.seconds or (await reorg.seen()).done

    await until(has_lasted)
    phase.read_per_s = (await reorg.read() - read) / (loop.time() - began)
    statements.phase = Phase()
    await reorg.over()
    return phase


async def alone(statements: Statements) -> Phase:
    phase = statements.phase = Phase()
    await asyncio.sleep(statements.asked.seconds)
    statements.phase = Phase()
    return phase


async def with_index(statements: Statements, http: httpx.AsyncClient) -> Phase:
    """Beside nothing, while they keep an index that is public."""
    reorg = await Reorg.begun(http, NO_LIMIT)
    await until(reorg.is_done)
    phase = await alone(statements)
    await reorg.over()
    return phase


async def rounds(statements: Statements, http: httpx.AsyncClient) -> dict[str, list[Phase]]:
    rates = {WHOLE: NO_LIMIT, SET: statements.asked.rows_per_s, PACED: None}
    found: dict[str, list[Phase]] = {name: [] for name in (NOTHING, KEPT, *rates)}
    await measured(statements, http, NO_LIMIT)  # warm: Spark starts with its first job
    for _ in range(ROUNDS):
        found[NOTHING].append(await alone(statements))
        found[KEPT].append(await with_index(statements, http))
        for name, rate in rates.items():
            found[name].append(await measured(statements, http, rate))
    return found


@asynccontextmanager
async def cluster(asked: Asked) -> AsyncIterator[tuple[list[str], str]]:
    """Addresses of the frontends and of the metasrv; the table has its rows."""
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=2, frontends=2)
        async with Playground(settings) as up, connect_async(list(up.metasrv_urls)) as db:
            await db.tables.create(SPEC)
            keys = range(asked.rows)
            columns = {
                "id": pa.array(keys, pa.int64()),
                "tenant": pa.array([key % 1000 for key in keys], pa.int64()),
                "tag": pa.array([f"tag {key * 7919 % asked.rows}" for key in keys]),
            }
            await db.table("main.public.t").load(pa.table(columns), BATCH_ROWS)
            yield list(up.frontend_urls.values()), up.metasrv_urls[0]


async def main(asked: Asked) -> int:
    async with (
        cluster(asked) as (frontends, metasrv),
        httpx.AsyncClient(trust_env=False, base_url=metasrv, timeout=60) as http,
        asyncio.TaskGroup() as tasks,
    ):
        statements = Statements(frontends, asked)
        running = tasks.create_task(statements.run())
        found = await rounds(statements, http)
        running.cancel()
    return show(asked, found)


def show(asked: Asked, found: dict[str, list[Phase]]) -> int:
    """1 if a statement was refused."""
    rate = f"--rate {asked.statements_per_s} --rows-per-s {asked.rows_per_s}"
    what = f"--rows {asked.rows} --seconds {asked.seconds:g} {rate}"
    head(f"python -m benchmarks.schema.foreground {what}", ROUNDS)
    for name, phases in found.items():
        if name not in (NOTHING, KEPT):
            line(f"{name}: rows that the reorg read", [one.read_per_s for one in phases], "/s")
        for percent in (50, 99):
            values = [one.percentile_ms(percent) for one in phases]
            line(f"{name}: p{percent} of statements", values, "ms", 1)
            if name is not NOTHING:
                before = [one.percentile_ms(percent) for one in found[NOTHING]]
                ratio(f"{name}: p{percent} / {NOTHING}", values, before)
            if name is PACED:
                kept = [one.percentile_ms(percent) for one in found[KEPT]]
                ratio(f"{name}: p{percent} / {KEPT}", values, kept)
        line(f"{name}: the slowest", [max(one.taken_ms) for one in phases], "ms", 1)
    refused = [body for phases in found.values() for one in phases for body in one.refused]
    answered = sum(len(one.taken_ms) for phases in found.values() for one in phases)
    print(f"{f'refused, of {answered:,} statements (0 is asked)':52}{len(refused):12}")
    for body in refused[:3]:
        print(body.decode())
    return 1 if refused else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.schema.foreground", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10, help="of each phase")
    parser.add_argument("--rate", type=int, default=100, help="statements due in a second")
    parser.add_argument("--rows-per-s", type=int, default=20_000, help="that an operator sets")
    said = parser.parse_args()
    raise SystemExit(asyncio.run(main(Asked(said.rows, said.seconds, said.rate, said.rows_per_s))))
