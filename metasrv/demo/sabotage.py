"""Two damages that nobody may miss: a row taken out of a region's file, a key edited in etcd."""

from collections.abc import Iterable
from pathlib import Path

import httpx
import orjson
import pyarrow.parquet as pq

from keys.model.tables import TableRoute, TableRouteKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Get, Put, Request
from keys.value import decode, encode
from metasrv_base.clock import Clock
from metasrv_base.errors import NotFound

DEADLINE_MS = 5_000
LOOK_MS = 100
MERGES_MS_MAX = 60_000
NOTHING_TO_MERGE = "datanode_regions_to_merge 0.0"


async def merges_are_over(datanode_urls: Iterable[str], clock: Clock) -> None:
    """Waits, a minute at most: a file that a merge has read is replaced, damage and all."""
    end = clock.mono_ms() + MERGES_MS_MAX
    async with httpx.AsyncClient(trust_env=False) as http:
        for url in datanode_urls:
            while await _merges(http, url) and clock.mono_ms() < end:
                await clock.sleep_ms(LOOK_MS)


async def _merges(http: httpx.AsyncClient, url: str) -> bool:
    """A node that is dead does not; one that does not answer perhaps does."""
    try:
        answer = await http.get(f"{url}/metrics")
    except httpx.TransportError as error:
        return not isinstance(error, httpx.ConnectError)
    return NOTHING_TO_MERGE not in answer.text


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
