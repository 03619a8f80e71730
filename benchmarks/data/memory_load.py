"""One-row statements for many regions of a real datanode, and the memory that it takes."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pyarrow as pa

from benchmarks.load import Connection, MakeRequest, connected, request_of
from metasrv_base.clock import SystemClock
from metasrv_base.wire.node.batches import HEADER_KEY, BatchHeader
from metasrv_base.wire.node.orders import OpenRegion, RegionColumn
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import ARROW, TABLE, Node

REGIONS = 200
CLIENTS = 64
BUSY_MS = 100
"""A refused statement is sent again after it, sooner than `Retry-After` asks for."""
_KEY, _ID, _TEXT = b"kkkkkkkkkkkkkkkk", b"iiiiiiiiiiiiiiiiiiii", b"tttttttt"


@dataclass(frozen=True, slots=True)
class Shape:
    """A region's columns: the first is its key, the second a string, the rest numbers."""

    columns: int
    text_bytes: int = 8

    @property
    def told(self) -> list[RegionColumn]:
        kinds = ["int64", "string", *["int64"] * (self.columns - 2)]
        return [RegionColumn(id=at, type=kind, nullable=at > 1) for at, kind in enumerate(kinds, 1)]

    def body(self, keys: Sequence[bytes], statement: str, epoch: int = 1) -> bytes:
        """The Arrow stream of one batch."""
        sent = BatchHeader(
            table_id=TABLE,
            schema_version=1,
            epoch=epoch,
            statement_id=statement,
            maintains_indexes=True,
        )
        count = len(keys)
        text = _TEXT.decode().ljust(self.text_bytes, "x")
        columns: dict[str, pa.Array] = {
            "_key": pa.array(keys, pa.binary()),
            "_op": pa.array([0] * count, pa.uint8()),
            "c1": pa.array(range(count), pa.int64()),
            "c2": pa.array([text] * count),
        }
        for at in range(3, self.columns + 1):
            columns[f"c{at}"] = pa.array([at] * count, pa.int64())
        batch = pa.RecordBatch.from_pydict(
            columns, metadata={HEADER_KEY: sent.model_dump_json().encode()}
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())


class OneRow:
    """Bodies of one row each, stamped: the client must take less time than the node."""

    def __init__(self, shape: Shape, epoch: int) -> None:
        self._mould = shape.body([_KEY], _ID.decode(), epoch)
        assert self._mould.count(_KEY) == self._mould.count(_ID) == 1

    def body(self, number: int, statement: str) -> bytes:
        assert len(statement) == len(_ID)
        return self._mould.replace(_KEY, key_of(number)).replace(_ID, statement.encode())


def key_of(number: int) -> bytes:
    """Returns a key; keys are in no order, like hashes."""
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)


@dataclass
class Growth:
    """Resident bytes of a process above those of an idle one."""

    pid: int
    idle: int = 0

    def begin(self, pid: int) -> None:
        """The process is idle now."""
        self.pid, self.idle = pid, 0
        self.idle = self.now
        self.forget_peak()

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def now(self) -> int:
        return self._read("VmRSS") - self.idle

    @property
    def peak(self) -> int:
        """The most since `forget_peak`."""
        return self._read("VmHWM") - self.idle

    def _read(self, name: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition(name + ":")[2].split()[0]) << 10


@dataclass
class Written:
    """Statements as a closed loop of clients sent them."""

    answers: Counter[bytes] = field(default_factory=Counter)
    """Responses by status: 200, and 503 for statements that were refused and sent again."""
    scans: Counter[bytes] = field(default_factory=Counter)
    """Responses to readers beside them, by status; each was read to its end."""
    seconds: float = 0.0

    @property
    def refused(self) -> int:
        return self.answers[b"503"]


@dataclass
class Bench:
    process: DatanodeProcess
    node: Node
    metasrv: FakeMetasrv
    growth: Growth
    shape: Shape
    folder: Path
    flags: dict[str, str]
    regions: list[int] = field(default_factory=list)
    roots: dict[int, str] = field(default_factory=dict)
    epoch: int = 1
    sent: int = 0
    """Rows so far."""

    def make_regions(self, count: int = REGIONS) -> None:
        self.regions += [self.node.created(columns=self.shape.told) for _ in range(count)]
        self.roots = {region: self.node.root_of(region) for region in self.regions}

    def restart(self) -> None:
        """Kills the node and starts it again; it replays all regions at once."""
        self.process.kill()
        self._start(self.process)
        self._open([self.node.open_order(region, self.epoch) for region in self.regions])

    def take_over(self) -> None:
        """Kills the node; another one opens all its regions at once."""
        self.process.kill()
        self.process = DatanodeProcess("dn-2", self.folder / "dn-2", self.metasrv.url, **self.flags)
        self._start(self.process)
        self.epoch += 1
        left = self.roots
        self.node.http.close()
        self.node = Node(self.process.url, "dn-2", self.process.root, self.metasrv)
        self._open(
            [self.node.open_order(one, self.epoch, borrows=[left[one]]) for one in self.regions]
        )

    def _start(self, process: DatanodeProcess) -> None:
        process.start()
        self.metasrv.wait_for(
            lambda: any(beat.incarnation == process.incarnation for beat in self.metasrv.heard)
        )
        self.node.url = process.url
        self.growth.begin(process.pid)

    def _open(self, orders: Sequence[OpenRegion]) -> None:
        told = [order.model_copy(update={"columns": self.shape.told}) for order in orders]
        results = self.node.order(*told).results
        assert not any(one.error for one in results), results

    def fill(self, statements: int, rows: int, *, readers: int = 0) -> Written:
        """Statements of *rows* rows, over all regions in turn. Beside them *readers* scan whole
        regions, one after another."""
        first = self.sent
        self.sent += statements * rows
        one_row, loaded = OneRow(self.shape, self.epoch), Written()
        now_ms = SystemClock().wall_ms()

        def request(number: int) -> bytes:
            statement = f"{now_ms:013}-{number % 10**6:06}"
            at = first + number * rows
            if rows == 1:
                body = one_row.body(at, statement)
            else:
                keys = [key_of(at + one) for one in range(rows)]
                body = self.shape.body(keys, statement, self.epoch)
            region = self.regions[number % len(self.regions)]
            path = f"/node/v1/regions/{region}/batch"
            return request_of("POST", path, {"content-type": ARROW}, body)

        async def run() -> None:
            async with asyncio.TaskGroup() as tasks:
                regions = itertools.cycle(self.regions)
                scans = [tasks.create_task(self._scan(regions, loaded)) for _ in range(readers)]
                await self._send(iter(range(statements)), request, loaded)
                for scan in scans:
                    scan.cancel()

        asyncio.run(run())
        return loaded

    async def _scan(self, regions: Iterator[int], loaded: Written) -> None:
        for region in regions:
            asked = {"table_id": TABLE, "schema_version": 1, "epoch": self.epoch}
            headers = {"accept": ARROW, "content-type": "application/json", "connection": "close"}
            path = f"/node/v1/regions/{region}/scan"
            async with connected(self.process.url) as connection:
                connection.writer.write(request_of("POST", path, headers, orjson.dumps(asked)))
                head = await connection.reader.readuntil(b"\r\n\r\n")
                while await connection.reader.read(1 << 16):
                    pass
                loaded.scans[head.split(b" ", 2)[1]] += 1

    async def _send(self, numbers: Iterator[int], request: MakeRequest, loaded: Written) -> None:
        clock = SystemClock()

        async def client() -> None:
            async with connected(self.process.url) as connection:
                for number in numbers:
                    await self._sent(connection, request(number), loaded, clock)

        began = clock.mono_ms()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CLIENTS):
                tasks.create_task(client())
        loaded.seconds += (clock.mono_ms() - began) / 1000

    async def _sent(
        self, connection: Connection, request: bytes, loaded: Written, clock: SystemClock
    ) -> None:
        while True:
            status, body = await connection.exchange(request)
            loaded.answers[status] += 1
            if status == b"200":
                return
            assert status == b"503", body
            await clock.sleep_ms(BUSY_MS)


@contextmanager
def bench(folder: Path, shape: Shape, memory_bytes: int, **flags: str) -> Iterator[Bench]:
    """A datanode that has been heard and holds nothing."""
    with ExitStack() as left:
        metasrv = left.enter_context(FakeMetasrv())
        given = {"memory_bytes": str(memory_bytes), **flags}
        process = DatanodeProcess("dn-1", folder / "dn-1", metasrv.url, **given)
        left.callback(process.close)
        process.start()
        metasrv.wait_for(lambda: bool(metasrv.heard))
        node = left.enter_context(Node(process.url, "dn-1", process.root, metasrv))
        growth = Growth(process.pid)
        growth.begin(process.pid)
        one = Bench(process, node, metasrv, growth, shape, folder, given)
        left.callback(lambda: one.process.close())
        left.callback(lambda: one.node.http.close())
        yield one
