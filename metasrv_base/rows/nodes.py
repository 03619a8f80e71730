"""Calls of one region at one node: bytes out, bytes in. Decides nothing, repeats nothing."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import httpx
import pyarrow as pa
from pydantic import BaseModel

from metasrv_base.errors import Unavailable
from metasrv_base.rows.arrow_parts import END_OF_STREAM
from metasrv_base.token import OwnToken
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.batches import NEXT_KEY, BatchResult

M = TypeVar("M", bound=BaseModel)

ARROW = "application/vnd.apache.arrow.stream"
ANSWER_MS = 5_000
"""Limit of a node's silence, in ms. A process that is stopped keeps its connections open."""
ROWS_BYTES_MAX = 256 << 20
"""The longest answer with rows that is read, in bytes."""
MORE = b"metasrv.more"
"""Key in the metadata of a table of rows, present if the response ended at its limit of bytes.
Its value is the key at which the scan continues, in hexadecimal."""
BYTES_PER_MS = 2_000
"""Bytes of a body that a slow disk writes in a millisecond."""


def has_more(rows: pa.Table) -> bool:
    """Returns whether *rows*, a table that `read_rows` returned, ended at its bound of bytes."""
    return MORE in (rows.schema.metadata or {})


def key_behind(rows: pa.Table) -> bytes:
    """Returns the key from which a scan continues after *rows*: the key that the node names in
    the metadata, else the one behind the last key."""
    next_key = (rows.schema.metadata or {}).get(MORE)
    if next_key:
        return bytes.fromhex(next_key.decode())
    last: bytes = rows.column("_key")[-1].as_py()
    return last + b"\x00"


class NodePools:
    """One connection pool per node."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        token: OwnToken | str | None = None,
        named_by: Sequence[str] = (),
    ) -> None:
        """Opens no connection yet. *named_by* are the servers whose routes are followed."""
        self._named_by = named_by
        self._transport = transport
        self._token = token
        self._clients: dict[str, HttpClient] = {}

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()

    async def write(self, region: RegionRouteBody, body: bytes, left_ms: int) -> BatchResult:
        """Durable when it returns."""
        answer = await self._at(region).request(
            "POST",
            f"/node/v1/regions/{region.region_id}/batch",
            content=body,
            headers={"content-type": ARROW},
            deadline_ms=min(left_ms, ANSWER_MS + len(body) // BYTES_PER_MS),
        )
        return answer.body(BatchResult)

    async def read_rows(
        self,
        region: RegionRouteBody,
        what: str,
        body: BaseModel | Mapping[str, object],
        left_ms: int,
    ) -> pa.Table:
        """*what* is `get` or `scan`; *body* a `GetRows` or `ScanRows`, or what is in one.
        `has_more` tells whether the answer ended at `bytes_max`."""
        answer = await self._at(region).request(
            "POST",
            f"/node/v1/regions/{region.region_id}/{what}",
            json=body,
            headers={"accept": ARROW},
            deadline_ms=min(left_ms, 4 * ANSWER_MS),
            answer_bytes_max=ROWS_BYTES_MAX,
        )
        if not answer.content.endswith(END_OF_STREAM):
            raise Unavailable("not-ready", what=answer.url, reason="the answer was cut")
        with pa.ipc.open_stream(pa.py_buffer(answer.content)) as reader:
            parts = list(reader.iter_batches_with_custom_metadata())
            rows = pa.Table.from_batches([part.batch for part in parts], reader.schema)
        if len(parts) > 1 and parts[-1].batch.num_rows == 0:
            following = (parts[-1].custom_metadata or {}).get(NEXT_KEY, b"")
            rows = rows.replace_schema_metadata({MORE: following})
        return rows

    async def read(
        self, region: RegionRouteBody, what: str, body: BaseModel, left_ms: int, model: type[M]
    ) -> M:
        answer = await self._at(region).request(
            "POST",
            f"/node/v1/regions/{region.region_id}/{what}",
            json=body,
            deadline_ms=min(left_ms, 4 * ANSWER_MS),
        )
        return answer.body(model)

    def _at(self, region: RegionRouteBody) -> HttpClient:
        """Raises Unavailable while the region has no leader that can be reached."""
        if region.state == "lost":
            raise Unavailable("region-lost", region_id=region.region_id)
        if region.address is None:
            raise Unavailable("not-ready", what=f"region {region.region_id}")
        if region.address not in self._clients:
            self._clients[region.address] = HttpClient(
                [region.address],
                transport=self._transport,
                token=self._token,
                named_by=self._named_by,
            )
        return self._clients[region.address]
