"""The node under test: requests as metasrv and clients make them, and answers as they come."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

import httpx
import pyarrow as pa

from metasrv_base.wire.node.batches import (
    HEADER_KEY,
    OP_DELETE,
    OP_PUT,
    BatchHeader,
    BatchResult,
    ChecksumResult,
    Rows,
)
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    Order,
    OrderRequest,
    OrderResponse,
    RegionColumn,
    SetSchema,
)
from tests.node_conformance.metasrv import CLUSTER, FakeMetasrv

ARROW = "application/vnd.apache.arrow.stream"
COLUMNS = [
    RegionColumn(id=1, type="int64", nullable=False),
    RegionColumn(id=2, type="string", nullable=True),
]
SCHEMA = {"c1": pa.int64(), "c2": pa.string()}
TABLE = 1024

_numbers = count(1)


def new_region() -> int:
    """A region id that no test has used."""
    return TABLE << 32 | next(_numbers)


@dataclass(frozen=True)
class Write:
    """One row of a batch. `value` None: a delete."""

    key: bytes
    value: int | None = None
    expect: int | None = None


@dataclass
class Node:
    """`number` is the next order number of the term in `metasrv.told`."""

    url: str
    node_id: str
    root: str
    metasrv: FakeMetasrv
    number: int = 0
    http: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=60))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    # -- as metasrv

    def order(self, *orders: Order, **changes: Any) -> OrderResponse:
        """One request that must be taken; the orders' own errors stand in the answer."""
        answer = self.post_orders(*orders, **changes)
        assert answer.status_code == 200, answer.text
        return OrderResponse.model_validate_json(answer.content)

    def post_orders(self, *orders: Order, **changes: Any) -> httpx.Response:
        request = OrderRequest(
            cluster_id=CLUSTER,
            node_id=self.node_id,
            term=self.metasrv.told.term,
            orders=list(orders),
        ).model_copy(update=changes)
        return self.http.post(
            self.url + "/node/v1/orders",
            content=request.model_dump_json(),
            headers={"content-type": "application/json"},
        )

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def create_order(self, region: int, epoch: int = 1, **changes: Any) -> CreateRegion:
        order = CreateRegion(
            number=self.next_number(),
            region_id=str(region),
            epoch=epoch,
            root=self.root_of(region),
            table_id=TABLE,
            schema_version=1,
            schema_floor=1,
            columns=COLUMNS,
            key_columns=[1],
            lease=self.metasrv.lease_for(self.node_id),
        )
        return order.model_copy(update=changes)

    def open_order(self, region: int, epoch: int, **changes: Any) -> OpenRegion:
        created = self.create_order(region, epoch).model_dump(exclude={"op", "replaces"})
        return OpenRegion.model_validate(created).model_copy(update=changes)

    def schema_order(self, region: int, version: int, **changes: Any) -> SetSchema:
        order = SetSchema(
            number=self.next_number(),
            region_id=str(region),
            epoch=1,
            schema_version=version,
            schema_floor=version,
            columns=COLUMNS,
        )
        return order.model_copy(update=changes)

    def close_order(self, region: int, epoch: int) -> CloseRegion:
        return CloseRegion(number=self.next_number(), region_id=str(region), epoch=epoch)

    def drop_order(self, region: int, epoch: int) -> DropRegion:
        return DropRegion(
            number=self.next_number(),
            region_id=str(region),
            epoch=epoch,
            root=self.root_of(region),
        )

    def discard_order(
        self, region: int, epoch: int, root: str, *, left: bool = False
    ) -> DiscardRoot:
        number, region_id = self.next_number(), str(region)
        return DiscardRoot(number=number, region_id=region_id, epoch=epoch, root=root, left=left)

    def root_of(self, region: int) -> str:
        return f"{self.root}/regions/{region}"

    def created(self, **changes: Any) -> int:
        """An empty region that is served under a lease."""
        region = new_region()
        response = self.order(self.create_order(region, **changes))
        assert response.results[0].error is None, response
        return region

    # -- as a client

    def post_batch(
        self, region: int, writes: Sequence[Write], statement: str, **header: int
    ) -> httpx.Response:
        return self.http.post(
            f"{self.url}/node/v1/regions/{region}/batch",
            content=batch_body(writes, statement, **header),
            headers={"content-type": ARROW},
        )

    def write(
        self, region: int, writes: Sequence[Write], statement: str, **header: int
    ) -> BatchResult:
        answer = self.post_batch(region, writes, statement, **header)
        assert answer.status_code == 200, answer.text
        return BatchResult.model_validate_json(answer.content)

    def post(self, region: int, call: str, accept: str = "*/*", **body: Any) -> httpx.Response:
        head = {"table_id": TABLE, "schema_version": 1, "epoch": 1}
        return self.http.post(
            f"{self.url}/node/v1/regions/{region}/{call}",
            json={**head, **body},
            headers={"accept": accept},
        )

    def metric(self, series: str) -> float:
        text = self.http.get(self.url + "/metrics").text
        found = [line.split()[-1] for line in text.splitlines() if line.startswith(series + " ")]
        return float(found[0]) if found else 0.0

    def stats(self) -> list[dict[str, Any]]:
        """The node's statistics of each of its regions."""
        return [region["stat"] for region in self.bodies()]

    def bodies(self) -> list[dict[str, Any]]:
        """The node's regions, each as it shows it."""
        answer = self.http.get(self.url + "/node/v1/regions")
        assert answer.status_code == 200, answer.text
        bodies: list[dict[str, Any]] = answer.json()["regions"]
        return bodies

    def body(self, region: int) -> dict[str, Any]:
        """One of its regions."""
        answer = self.http.get(f"{self.url}/node/v1/regions/{region}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def scan(self, region: int, **body: Any) -> Rows:
        answer = self.post(region, "scan", **body)
        assert answer.status_code == 200, answer.text
        return Rows.model_validate_json(answer.content)

    def checksum(self, region: int, **body: Any) -> ChecksumResult:
        answer = self.post(region, "checksum", **body)
        assert answer.status_code == 200, answer.text
        return ChecksumResult.model_validate_json(answer.content)


def batch_body(writes: Sequence[Write], statement: str, **header: int) -> bytes:
    head: dict[str, Any] = {"table_id": TABLE, "schema_version": 1, "epoch": 1, **header}
    sent = BatchHeader(statement_id=statement, maintains_indexes=True, **head)
    metadata = {HEADER_KEY: sent.model_dump_json()}
    schema = pa.schema(
        [
            pa.field("_key", pa.binary()),
            pa.field("_op", pa.uint8()),
            pa.field("_expect", pa.int64()),
            *(pa.field(name, kind) for name, kind in SCHEMA.items()),
        ],
        metadata=metadata,
    )
    columns = [
        [write.key for write in writes],
        [OP_DELETE if write.value is None else OP_PUT for write in writes],
        [write.expect for write in writes],
        [write.value for write in writes],
        [None if write.value is None else f"v{write.value}" for write in writes],
    ]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return bytes(sink.getvalue())
