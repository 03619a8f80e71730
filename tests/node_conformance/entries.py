"""Entries of an index as the node protocol takes them."""

import io

import httpx
import pyarrow as pa
import pytest

from metasrv_base.wire.node.batches import HEADER_KEY, BatchHeader
from tests.node_conformance.node import ARROW, TABLE, Node

INDEX = 7


Entry = tuple[bytes, bytes | None]


"""Its key, and the key of its row; None: a delete."""


def post_entries(
    node: Node, region: int, statement: str, rows: dict[bytes, int], *entries: Entry
) -> httpx.Response:
    """Rows and entries in one batch; entries must be absent."""
    count, more = len(rows), len(entries)
    header = BatchHeader(
        table_id=TABLE,
        schema_version=2,
        epoch=1,
        statement_id=statement,
        maintains_indexes=True,
    )
    batch = pa.RecordBatch.from_pydict(
        {
            "_key": pa.array([*rows, *(key for key, _ in entries)], pa.binary()),
            "_op": pa.array([0] * count + [int(row is None) for _, row in entries], pa.uint8()),
            "_family": pa.array([None] * count + [INDEX] * more, pa.int32()),
            "_row": pa.array([None] * count + [row for _, row in entries], pa.binary()),
            "_expect": pa.array([None] * count + [0] * more, pa.int64()),
            "c1": pa.array([*rows.values(), *([None] * more)], pa.int64()),
        }
    )
    schema = batch.schema.with_metadata({HEADER_KEY: header.model_dump_json().encode()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch.cast(schema))
    url = f"{node.url}/node/v1/regions/{region}/batch"
    return node.http.post(url, content=sink.getvalue(), headers={"content-type": ARROW})


@pytest.fixture
def region(node: Node) -> int:
    """Two rows, of which each has an entry; the entries are in the other order."""
    region = node.created()
    told = node.order(node.schema_order(region, version=2, indexes=[INDEX])).results[0]
    assert told.error is None
    done = post_entries(node, region, "s1", {b"a": 1, b"b": 2}, (b"y", b"a"), (b"x", b"b"))
    assert done.json()["rows"] == 4, done.text
    return region
