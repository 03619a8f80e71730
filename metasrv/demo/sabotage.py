"""Two damages that nobody may miss: a row taken out of a region's file, a key edited in etcd."""

from pathlib import Path

import orjson
import pyarrow.parquet as pq

from base.errors import NotFound
from keys.etcd import EtcdKv
from keys.kv import Get, Put, Request
from keys.tables import TableRoute, TableRouteKey
from keys.value import decode, encode

DEADLINE_MS = 5_000


def take_a_row_out(roots: dict[str, Path]) -> Path:
    """Rewrites the largest data file of the nodes without its last row. The file it damaged."""
    files = [file for root in roots.values() for file in root.glob("regions/**/*.parquet")]
    if not files:
        raise NotFound(what="file", name="*.parquet")
    largest = max(files, key=lambda file: file.stat().st_size)
    rows = pq.read_table(largest)
    pq.write_table(rows.slice(0, rows.num_rows - 1), largest)
    return largest


async def edit_a_key(etcd: str, prefix: str, table_id: int) -> str:
    """Says in the route that another node leads a region. The key it damaged."""
    kv = await EtcdKv.connect([etcd.removeprefix("http://")], prefix.encode())
    try:
        key = TableRouteKey(table_id)
        page = await kv.range(Get(bytes(key)), deadline_ms=DEADLINE_MS)
        route = decode(TableRoute, page.items[0].value, key=str(key))
        first, *rest = route.region_routes
        other = next(r.leader for r in rest if r.leader != first.leader)
        moved = first.model_copy(update={"leader": other})
        wrong = route.model_copy(update={"region_routes": (moved, *rest)})
        assert orjson.loads(encode(wrong)) != orjson.loads(encode(route))
        await kv.txn(Request(writes=(Put(bytes(key), encode(wrong)),)), deadline_ms=DEADLINE_MS)
    finally:
        await kv.close()
    return str(key)
