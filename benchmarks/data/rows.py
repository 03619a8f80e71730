"""`benchmarks.data.rows`: rows through a frontend, against PostgreSQL and plain pyarrow.

One metasrv with Spark, one node, one frontend, one table of one region, and a PostgreSQL with a
table of the same columns and primary key, fsync on. Reads and writes are the same requests that a
program sends: Arrow streams for scans and inserts, JSON for one row; PostgreSQL is asked over its
own protocol by as small a client, from a thread as a scan is. Rounds alternate. `--rows`: of the
table that is read.
"""

import argparse
import asyncio
import io
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks.load import closed_loop, request_of
from benchmarks.postgres import PORT, Connection, missing_postgres, postgres, socket_in
from benchmarks.report import head, line, ratio
from benchmarks.service.creates import cpu_ms
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.clock import SystemClock

ROUNDS = 3
ROWS = 1_000_000
BATCH_ROWS = 1_000
BATCHES = 100  # of each client count and round
POINTS = 400
DELETED = 10_000
TABLES = "/v1/catalogs/main/schemas/public/tables"
DATA = "/v1/tables/main/public"
ARROW = "application/vnd.apache.arrow.stream"
COLUMNS = [
    {"name": "id", "type": "int64", "nullable": False},
    {"name": "tenant", "type": "int32", "nullable": False},
    {"name": "value", "type": "float64", "nullable": False},
    {"name": "tag", "type": "string", "nullable": False},
]
MADE = "id bigint PRIMARY KEY, tenant int NOT NULL, value float8 NOT NULL, tag text NOT NULL"


@dataclass
class Found:
    """Figures by name, round by round."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.values.setdefault(name, []).append(value)


@dataclass(frozen=True)
class Scene:
    http: httpx.AsyncClient
    """Client of the frontend."""
    metasrv: httpx.AsyncClient
    frontend: str
    folder: Path
    server: Path
    """PostgreSQL's socket."""
    rows: int
    found: Found
    pids: Mapping[str, int]
    """Processes whose processor time is told apart, by role."""
    clock: SystemClock = field(default_factory=SystemClock)

    def processor_us(self) -> Mapping[str, float]:
        """The processor time of each process since its start, by role."""
        return {role: 1_000 * cpu_ms(pid) for role, pid in self.pids.items()}

    def add_processor(self, what: str, before: Mapping[str, float], units: int) -> None:
        """Adds the processor time of each process since *before*, for each of *units*."""
        for role, used_us in self.processor_us().items():
            self.found.add(f"{what}, processor of the {role}, us", (used_us - before[role]) / units)

    def since_s(self, began_ms: int) -> float:
        return max(self.clock.mono_ms() - began_ms, 1) / 1000


def rows_between(start: int, end: int) -> pa.Table:
    ids = pa.array(range(start, end), pa.int64())
    return pa.table(
        {
            "id": ids,
            "tenant": pa.array([number % 1000 for number in range(start, end)], pa.int32()),
            "value": pa.array([number * 0.5 for number in range(start, end)], pa.float64()),
            "tag": pa.array([f"tag of row {number:010d}" for number in range(start, end)]),
        }
    )


def stream_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def text_of(table: pa.Table) -> bytes:
    """Returns the table as text for COPY."""
    sink = io.BytesIO()
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    csv.write_csv(table, sink, options)
    return sink.getvalue()


async def scanned(scene: Scene) -> None:
    """By as thin a client as that of PostgreSQL: httpx took a quarter of the time of a scan."""

    def scan() -> int:
        where = urlsplit(scene.frontend)
        connection = HTTPConnection(where.hostname or "", where.port)
        with closing(connection):
            connection.request("GET", f"{DATA}/read/scan", headers={"accept": ARROW})
            rows: int = pa.ipc.open_stream(connection.getresponse()).read_all().num_rows
        return rows

    before, began_ms = scene.processor_us(), scene.clock.mono_ms()
    assert await asyncio.to_thread(scan) == scene.rows
    scene.found.add("scan, frontend", scene.rows / scene.since_s(began_ms))
    scene.add_processor("scan, a row", before, scene.rows)


def files_in(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*.parquet"))


async def scanned_by_peers(scene: Scene, root: Path) -> None:
    files = files_in(root)
    began_ms = scene.clock.mono_ms()
    read = await asyncio.to_thread(lambda: ds.dataset(files).to_table().num_rows)
    scene.found.add("scan, pyarrow.dataset", read / scene.since_s(began_ms))
    connection = Connection(scene.server)
    began_ms = scene.clock.mono_ms()
    await asyncio.to_thread(connection.run, "COPY read TO STDOUT")
    scene.found.add("scan, PostgreSQL COPY TO", scene.rows / scene.since_s(began_ms))
    connection.close()


async def points(scene: Scene) -> None:
    step = max(scene.rows // POINTS, 1)
    for clients in (1, 16):

        def get(number: int) -> bytes:
            return request_of("GET", f"{DATA}/read/rows?key={number * step}", {}, b"")

        before = scene.processor_us()
        load = await closed_loop(scene.frontend, get, range(POINTS), clients=clients, status=b"200")
        scene.add_processor(f"point read, {clients} clients", before, POINTS)
        ordered = sorted(load.latencies_ms)
        scene.found.add(f"point read, frontend, {clients}", load.per_second)
        scene.found.add(f"point read p50 ms, frontend, {clients}", ordered[len(ordered) // 2])

        def select(connection: Connection, number: int) -> None:
            connection.run(f"SELECT * FROM read WHERE id = {number * step}")

        rate = await by_threads(scene, select, POINTS, clients)
        scene.found.add(f"point read, PostgreSQL, {clients}", rate)


async def inserts(scene: Scene, number: int) -> None:
    for clients in (1, 4):
        first = (number * 10 + clients) * BATCHES * BATCH_ROWS
        tables = [
            rows_between(first + one * BATCH_ROWS, first + (one + 1) * BATCH_ROWS)
            for one in range(BATCHES)
        ]
        bodies = [stream_of(table) for table in tables]

        def post(number: int, bodies: Sequence[bytes] = bodies) -> bytes:
            headers = {"content-type": ARROW}
            return request_of("POST", f"{DATA}/written/rows?op=insert", headers, bodies[number])

        load = await closed_loop(
            scene.frontend, post, range(BATCHES), clients=clients, status=b"200"
        )
        scene.found.add(f"insert, frontend, {clients}", load.per_second * BATCH_ROWS)
        texts = [text_of(table) for table in tables]

        def copy(connection: Connection, number: int, texts: Sequence[bytes] = texts) -> None:
            connection.copy_in("COPY written FROM STDIN", texts[number])

        rate = await by_threads(scene, copy, BATCHES, clients)
        scene.found.add(f"insert, PostgreSQL COPY, {clients}", rate * BATCH_ROWS)


async def by_threads(
    scene: Scene, ask: Callable[[Connection, int], None], count: int, clients: int
) -> float:
    """Calls *ask* *count* times and returns the calls per second. Each client has a connection to
    PostgreSQL and a thread, as programs in Python have."""
    waiting = iter(range(count))

    def client() -> None:
        connection = Connection(scene.server)
        for number in waiting:
            ask(connection, number)
        connection.close()

    began_ms = scene.clock.mono_ms()
    with ThreadPoolExecutor(clients) as threads:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, client) for _ in range(clients)))
    return count / scene.since_s(began_ms)


async def deletes(scene: Scene, number: int) -> None:
    """Measures, in seconds, a delete of rows that have entries in a unique index."""
    first = number * DELETED
    body = stream_of(rows_between(first, first + DELETED))
    path = f"{DATA}/unique/rows"
    answer = await scene.http.post(
        path, params={"op": "insert"}, content=body, headers={"content-type": ARROW}
    )
    assert answer.status_code == 200, answer.text
    keys = stream_of(rows_between(first, first + DELETED).select(["id"]))
    began_ms = scene.clock.mono_ms()
    answer = await scene.http.post(
        path, params={"op": "delete"}, content=keys, headers={"content-type": ARROW}
    )
    if answer.status_code == 200:
        scene.found.add("delete of 10,000 under a unique index, s", scene.since_s(began_ms))
    else:
        print("delete under a unique index:", answer.json().get("code"))


async def imports(scene: Scene, number: int) -> None:
    path = scene.folder / f"import-{number}.parquet"
    table = rows_between(0, scene.rows)
    pq.write_table(table, path)
    name = f"imported_{number}"
    await create(scene.metasrv, name)
    began_ms = scene.clock.mono_ms()
    await brought(scene, name, path)
    scene.found.add("import, metasrv", scene.rows / scene.since_s(began_ms))
    text, connection = scene.folder / "import.txt", Connection(scene.server)
    text.write_bytes(text_of(table))
    connection.run(f"CREATE TABLE {name} ({MADE})")
    began_ms = scene.clock.mono_ms()
    await asyncio.to_thread(connection.run, f"COPY {name} FROM '{text}'")
    scene.found.add("import, PostgreSQL COPY", scene.rows / scene.since_s(began_ms))
    connection.close()


async def brought(scene: Scene, name: str, path: Path) -> None:
    """A file into a table, by the bulk path, however long it takes."""
    wait = {"prefer": "wait=60"}
    paths = {"paths": [str(path)]}
    answer = await scene.metasrv.post(f"{TABLES}/{name}/import", json=paths, headers=wait)
    assert answer.status_code in (200, 202), answer.text
    body = answer.json()
    while body.get("done") is False:
        body = (await scene.metasrv.get(f"/v1/procedures/{body['id']}", headers=wait)).json()
    assert body.get("error") is None, body


async def create(metasrv: httpx.AsyncClient, name: str) -> str:
    """The id of its one region."""
    spec = {"name": name, "columns": COLUMNS, "primary_key": ["id"]}
    answer = await metasrv.post(TABLES, json=spec, headers={"prefer": "wait=60"})
    assert answer.status_code == 201, answer.text
    route = await metasrv.get(f"{TABLES}/{name}/route")
    return str(route.json()["regions"][0]["region_id"])


async def prepared(scene: Scene) -> Path:
    """The folder of the region that is read."""
    region = await create(scene.metasrv, "read")
    await create(scene.metasrv, "written")
    await create(scene.metasrv, "unique")
    index = {"name": "by_tag", "columns": ["tag"], "unique": True}
    answer = await scene.metasrv.post(
        f"{TABLES}/unique/indexes", json=index, headers={"prefer": "wait=60"}
    )
    assert answer.status_code == 201, answer.text
    path = scene.folder / "read.parquet"
    pq.write_table(rows_between(0, scene.rows), path)
    await brought(scene, "read", path)
    connection = Connection(scene.server)
    for name in ("read", "written"):
        connection.run(f"CREATE TABLE {name} ({MADE})")
    connection.copy_in("COPY read FROM STDIN", text_of(rows_between(0, scene.rows)))
    connection.run("VACUUM ANALYZE read")
    connection.close()
    return next(path for path in scene.folder.rglob(f"*{region}*") if path.is_dir())


async def measured(folder: Path, server: Path, rows: int) -> Found:
    found = Found()
    settings = PlaygroundOptions(data_dir=folder / "playground", datanodes=1, frontends=1)
    async with Playground(settings) as up:
        metasrv, frontend = up.metasrv_urls[0], next(iter(up.frontend_urls.values()))
        async with (
            httpx.AsyncClient(trust_env=False, base_url=metasrv, timeout=90) as control,
            httpx.AsyncClient(trust_env=False, base_url=frontend, timeout=90) as http,
        ):
            of = {one.role: up.pid(one.id) for one in up.programs}
            pids = {role: of[role] for role in ("datanode", "frontend")}
            scene = Scene(http, control, frontend, folder, server, rows, found, pids)
            root = await prepared(scene)
            for number in range(ROUNDS):
                await scanned(scene)
                await scanned_by_peers(scene, root)
                await points(scene)
                await inserts(scene, number)
                await imports(scene, number)
            for number in range(ROUNDS):
                await deletes(scene, number)
    return found


COMPARED = (
    ("scan, frontend", "scan, pyarrow.dataset"),
    ("scan, frontend", "scan, PostgreSQL COPY TO"),
    ("point read, frontend, 1", "point read, PostgreSQL, 1"),
    ("point read, frontend, 16", "point read, PostgreSQL, 16"),
    ("insert, frontend, 1", "insert, PostgreSQL COPY, 1"),
    ("insert, frontend, 4", "insert, PostgreSQL COPY, 4"),
    ("import, metasrv", "import, PostgreSQL COPY"),
)


def show(found: Found, rows: int) -> None:
    head(f"python -m benchmarks.data.rows --rows {rows}", ROUNDS)
    for name, values in found.values.items():
        line(name, values, "", 1)
    for ours, peer in COMPARED:
        ratio(f"{ours} / {peer}", found.values[ours], found.values[peer])


def main(rows: int) -> int:
    """0 also without PostgreSQL: a line says what to install."""
    if (fix := missing_postgres()) is not None:
        print(f"skipped: {fix}")
        return 0
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as name:
        os.chmod(name, 0o755)  # the owner of PostgreSQL enters it
        folder = Path(name)
        with postgres(folder / "postgres", {"max_wal_size": "4GB"}):
            server = socket_in(folder / "postgres", PORT)
            found = asyncio.run(measured(folder, server, rows))
    show(found, rows)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.data.rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    raise SystemExit(main(parser.parse_args().rows))
