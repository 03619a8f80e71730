"""`benchmarks.data.sql_routes`: the same requests as SQL text and as JSON, as ratios.

One metasrv, one node, one frontend. Creates of a table go to metasrv, as a CREATE TABLE of
`--columns` columns and as the spec that says the same; reads by key and inserts of one row, and
inserts of 500, to the frontend. Requests of one client that waits for each answer; both forms take
turns, request by request, so that other load on the machine meets both.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.report import head, line
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

CREATES = 40
READS = 300
BATCHES = 20
BATCH_ROWS = 500
TABLES = "/v1/catalogs/main/schemas/public/tables"
ROWS = "/v1/tables/main/public/read/rows"
Send = Callable[[int], Awaitable[httpx.Response]]


@dataclass
class Pair:
    """Two forms of one request; the times of both, in ms."""

    what: str
    sql: Send
    json: Send
    sql_ms: list[float] = field(default_factory=list)
    json_ms: list[float] = field(default_factory=list)

    async def measure(self, count: int) -> None:
        for number in range(count):
            self.sql_ms.append(await timed(self.sql, 2 * number))
            self.json_ms.append(await timed(self.json, 2 * number + 1))

    def show(self) -> None:
        text = line(f"{self.what}, SQL, ms", self.sql_ms, "", 2)
        body = line(f"{self.what}, JSON, ms", self.json_ms, "", 2)
        print(f"{self.what}, SQL / JSON: {text / body:.2f}", flush=True)


async def timed(send: Send, number: int) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    response = await send(number)
    took_ms = (loop.time() - began) * 1000
    assert response.status_code in (200, 201), response.text
    return took_ms


def spec_of(name: str, columns: int) -> dict[str, object]:
    others = [{"name": f"c{number}", "type": "int64"} for number in range(1, columns)]
    return {
        "name": name,
        "columns": [{"name": "id", "type": "int64", "nullable": False}, *others],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": 1},
    }


def text_of(name: str, columns: int) -> str:
    others = "".join(f", c{number} BIGINT" for number in range(1, columns))
    partition = "PARTITION BY HASH (id) PARTITIONS 1"
    return f"CREATE TABLE {name} (id BIGINT NOT NULL{others}, PRIMARY KEY (id)) {partition}"


def pairs(metasrv: httpx.AsyncClient, frontend: httpx.AsyncClient, columns: int) -> list[Pair]:
    wait = {"prefer": "wait=30"}

    def sql(text: str) -> Awaitable[httpx.Response]:
        return frontend.post("/v1/sql", json={"text": text})

    def rows(first: int, count: int) -> list[dict[str, int]]:
        return [{"id": first + number, "c1": number} for number in range(count)]

    def insert(first: int, count: int) -> str:
        values = ", ".join(f"({row['id']}, {row['c1']})" for row in rows(first, count))
        return f"INSERT INTO read (id, c1) VALUES {values}"

    def written(first: int, count: int) -> Awaitable[httpx.Response]:
        return frontend.post(ROWS, json={"op": "insert", "rows": rows(first, count)})

    return [
        Pair(
            "create of a table",
            lambda n: metasrv.post(
                "/v1/sql", json={"text": text_of(f"t{n}", columns)}, headers=wait
            ),
            lambda n: metasrv.post(TABLES, json=spec_of(f"t{n}", columns), headers=wait),
        ),
        Pair(
            "insert of one row",
            lambda n: sql(insert(n, 1)),
            lambda n: written(n, 1),
        ),
        Pair(
            "read of a row by its key",
            lambda n: sql(f"SELECT * FROM read WHERE id = {n}"),
            lambda n: frontend.get(ROWS, params={"key": str(n)}),
        ),
        Pair(
            f"insert of {BATCH_ROWS} rows",
            lambda n: sql(insert(1_000_000 + n * BATCH_ROWS, BATCH_ROWS)),
            lambda n: written(1_000_000 + n * BATCH_ROWS, BATCH_ROWS),
        ),
    ]


async def measured(folder: Path, columns: int) -> list[Pair]:
    options = PlaygroundOptions(folder, datanodes=1, frontends=1)
    async with Playground(options) as playground:
        (url,) = playground.frontend_urls.values()
        async with (
            httpx.AsyncClient(base_url=playground.metasrv_urls[0], timeout=60) as metasrv,
            httpx.AsyncClient(base_url=url, timeout=60) as frontend,
        ):
            made = await metasrv.post(
                TABLES, json=spec_of("read", columns), headers={"prefer": "wait=30"}
            )
            assert made.status_code == 201, made.text
            known = await frontend.get(ROWS, params={"key": "0"})  # asks for a table that is new
            assert known.status_code == 200, known.text
            forms = pairs(metasrv, frontend, columns)
            for pair, count in zip(forms, (CREATES, READS, READS, BATCHES), strict=True):
                await pair.measure(count)
    return forms


def main(columns: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as name:
        forms = asyncio.run(measured(Path(name), columns))
    head(f"python -m benchmarks.data.sql_routes --columns {columns}", CREATES)
    for pair in forms:
        pair.show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.data.sql_routes", description=__doc__)
    parser.add_argument("--columns", type=int, default=10)
    main(parser.parse_args().columns)
