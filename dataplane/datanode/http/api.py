"""The node protocol as routes: parse, call one method of the service, shape the answer."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response

from dataplane.datanode.answers import Alive, NodeRegions, RegionBody, VersionBody
from dataplane.datanode.copies.followed import APPEND_BYTES_MAX
from dataplane.datanode.copies.peers import BINARY
from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.datanode.service import DatanodeService
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.http.asgi import read_body
from metasrv_base.wire.limits import BATCH_BYTES_MAX
from metasrv_base.wire.model import INT64_END, REGION_ID_CHARS_MAX, RegionId
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.node.batches import (
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
    GetRows,
    Rows,
    ScanRows,
)
from metasrv_base.wire.node.copy_sessions import (
    FILE_NUMBER_MAX,
    PIECE_BYTES_MAX,
    SESSION_CHARS_MAX,
    CopySession,
    CopySessionRequest,
)
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import OrderRequest, OrderResponse
from metasrv_base.wire.node.promises import PromiseAnswer, PromiseRequest
from metasrv_base.wire.node.silences import LeaderHeard
from serving.timed_stream import Begun, TimedStream, whole_answer

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
IPC_OVERHEAD_BYTES_MAX = 1 << 20
"""The most bytes of an Arrow stream around its buffers: schema, metadata, padding."""
BODY_BYTES_MAX = BATCH_BYTES_MAX + IPC_OVERHEAD_BYTES_MAX

log = structlog.get_logger()
node = APIRouter(prefix="/node/v1", tags=["node"])
admin = APIRouter(tags=["admin"])


async def service(request: Request) -> DatanodeService:
    instance = request.app.state.service
    assert isinstance(instance, DatanodeService)
    return instance


async def region_number(region_id: str) -> int:
    """Region ids are decimal strings, without signs or leading zeros."""
    if len(region_id) > REGION_ID_CHARS_MAX:  # int() would not take thousands of digits
        raise NotFound(what="region", name=region_id[:REGION_ID_CHARS_MAX])
    if not (region_id.isascii() and region_id.isdecimal() and str(int(region_id)) == region_id):
        raise NotFound(what="region", name=region_id)
    return int(region_id)


ServiceDep = Annotated[DatanodeService, Depends(service)]
RegionDep = Annotated[int, Depends(region_number)]
SessionQuery = Annotated[str, Query(min_length=1, max_length=SESSION_CHARS_MAX)]

_ARROW_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An Arrow IPC stream with a `BatchHeader` in its schema's metadata.",
        "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_APPEND_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Records by copy, as `dataplane/region/following/append_body.py` has them.",
        "content": {BINARY: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_PIECE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Bytes of the file.",
        "content": {BINARY: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ARROW_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Rows,
        "description": "Rows, as JSON or as an Arrow IPC stream, by `Accept`.",
        "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@node.post("/orders")
async def execute_orders(orders: OrderRequest, service: ServiceDep) -> OrderResponse:
    """Orders of metasrv, executed once each and answered in their order."""
    return await service.execute_orders(orders)


@node.post("/adopt")
async def adopt_node(request: AdoptRequest, service: ServiceDep) -> AdoptAnswer:
    """Leave a cluster for the one that was restored from its backup. No region is served then."""
    return await service.adoption.adopt(request)


@node.post("/copies/promises")
async def promise_reads(request: PromiseRequest, service: ServiceDep) -> PromiseAnswer:
    """Promises of this node's copies to the leaders of another node that they serve nothing; while
    these last, the leaders may answer reads."""
    return service.promises.answer(request)


@node.get("/copies/heard")
async def get_heard(
    service: ServiceDep, leader: Annotated[str, Query(min_length=1, max_length=128)]
) -> LeaderHeard:
    """The time since a leader last asked the copies of this node for promises."""
    return service.promises.silence_of(leader)


@node.post("/copies/sessions")
async def begin_copy_session(request: CopySessionRequest, service: ServiceDep) -> CopySession:
    """Keep the files of a region that this node leads, while a copy fetches them."""
    return await service.sessions.begin(request)


@node.delete("/copies/sessions", status_code=204)
async def end_copy_session(service: ServiceDep, session: SessionQuery) -> None:
    """End a session; its files may be merged into others again."""
    service.sessions.end(session)


@node.get("/copies/files", response_class=Response, responses=_PIECE_ANSWER)
async def read_copy_file(
    service: ServiceDep,
    session: SessionQuery,
    file: Annotated[int, Query(ge=0, le=FILE_NUMBER_MAX)],
    offset: Annotated[int, Query(ge=0, lt=INT64_END)],
) -> Response:
    """A piece of a file of a session, at most 1 MiB; without bytes at the end of the file."""
    piece = await service.sessions.read(session, file, offset, PIECE_BYTES_MAX)
    return Response(piece, media_type=BINARY)


@node.get("/inventory")
async def list_inventory(
    service: ServiceDep,
    first: Annotated[RegionId, Query()] = "0",
    last: Annotated[RegionId, Query()] = str(INT64_END - 1),
    log_ends: Annotated[bool, Query()] = False,
) -> Inventory:
    """The folders of regions on the disk, by region, with their fences and manifests. `log_ends`:
    also the last record of each, for which its whole log is read: ask for few regions."""
    return await service.adoption.inventory(int(first), int(last), log_ends=log_ends)


@node.get("/regions")
async def list_regions(service: ServiceDep) -> NodeRegions:
    """Every region that this process opens, serves, or has lost."""
    return service.all_regions()


@node.get("/regions/{region_id}")
async def get_region(region: RegionDep, service: ServiceDep) -> RegionBody:
    """One region as this process has it."""
    return service.region(region)


@node.get("/regions/{region_id}/borrowed")
async def list_borrowed(region: RegionDep, service: ServiceDep) -> Borrowed:
    """The read-only inputs in other roots that a job must copy to the region's own root."""
    return await service.rows.borrowed(region)


@node.get("/regions/{region_id}/snapshot")
async def list_snapshot(
    region: RegionDep,
    service: ServiceDep,
    mark: Annotated[str, Query(min_length=1, max_length=128)],
    index: Annotated[Sequence[int], Query(max_length=64)] = (),
    all: Annotated[bool, Query()] = False,
) -> Snapshot:
    """Files with all rows as of an open mark, and with the entries of the named indexes, or with
    `all` of every index; rows in memory are flushed first."""
    return await service.rows.snapshot(region, mark, None if all else index)


@node.post("/copies/append", response_model=AppendAnswer, openapi_extra=_APPEND_BODY)
async def append_to_copies(request: Request, service: ServiceDep) -> Response:
    """Records from leaders for the copies of this node; durable when the request is answered."""
    with service.copies.room_for(_length(request, APPEND_BYTES_MAX)):
        body = await read_body(request.receive, APPEND_BYTES_MAX)
        done = await service.copies.append(body)
    return Response(done.model_dump_json(), media_type=JSON)


@node.post("/regions/{region_id}/batch", response_model=BatchResult, openapi_extra=_ARROW_BODY)
async def write_batch(request: Request, region: RegionDep, service: ServiceDep) -> Response:
    """An atomic batch of puts and deletes; durable when it is answered."""
    with service.rows.room_for(_length(request, BODY_BYTES_MAX)):
        body = await read_body(request.receive, BODY_BYTES_MAX)
        done = await service.rows.write(region, body)
    return Response(done.model_dump_json(), media_type=JSON)


@node.post("/regions/{region_id}/get", response_model=Rows, responses=_ARROW_ANSWER)
async def get_rows(
    query: GetRows, request: Request, region: RegionDep, service: ServiceDep
) -> Response:
    """Live rows, or entries of an index, by key and in key order; missing keys are left out."""
    await service.regions.hand_overs.may_read(region, query)
    with ExitStack() as slot:
        held = slot.enter_context(service.rows.reading_keys())
        if wants_arrow(request):
            kind, body = ARROW, await service.rows.get_arrow(region, query, held)
        else:
            kind, body = JSON, _json(await service.rows.get_json(region, query, held))
        return whole_answer(body, kind, slot.pop_all().close)


@node.post("/regions/{region_id}/scan", response_model=Rows, responses=_ARROW_ANSWER)
async def scan_rows(
    query: ScanRows, request: Request, region: RegionDep, service: ServiceDep
) -> Response | Rows:
    """Live rows of a range, in key order, as of one moment."""
    await service.regions.hand_overs.may_read(region, query)
    if not wants_arrow(request):
        if query.values_only:
            raise Refused("invalid-request", pointer="/values_only", expected=f"Accept: {ARROW}")
        with ExitStack() as slot:
            held = slot.enter_context(service.rows.scanning(region, query, ReaderKind.JSON))
            body = _json(await service.rows.scan_json(region, query, held))
            return whole_answer(body, JSON, slot.pop_all().close)
    rows = service.rows
    parts = (rows.scan_values if query.values_only else rows.scan_arrow)(region, query)
    first = await anext(parts)  # what can be refused is refused before the status is sent
    return TimedStream(Begun(first, parts), media_type=ARROW)


@node.post("/regions/{region_id}/checksum")
async def checksum(
    query: ChecksumRequest, region: RegionDep, service: ServiceDep
) -> ChecksumResult:
    """Count and order-independent checksum of the live rows: a full scan."""
    await service.regions.hand_overs.may_read(region, query)
    return await service.rows.checksum(region, query)


@node.post("/regions/{region_id}/flush")
async def flush(region: RegionDep, service: ServiceDep) -> RegionBody:
    """Write the rows in memory to a file now."""
    await service.rows.flush(region)
    return service.region(region)


@admin.get("/livez")
async def livez() -> Alive:
    """The process answers."""
    return Alive()


@admin.get("/readyz")
async def readyz(service: ServiceDep) -> Alive:
    """The leader has answered a heartbeat within one lease."""
    service.check_ready()
    return Alive()


@admin.get("/version")
async def version(service: ServiceDep) -> VersionBody:
    """The version and id of this process, and its cluster."""
    return service.version()


@admin.get("/metrics", response_class=Response)
async def metrics(service: ServiceDep) -> Response:
    """Counters in the Prometheus text format."""
    text = service.metrics.text(service.regions, service.membership)
    return Response(text, media_type="text/plain; version=0.0.4")


def wants_arrow(request: Request) -> bool:
    return ARROW in request.headers.get("accept", "")


def _json(rows: Rows) -> bytes:
    return rows.model_dump_json().encode()


def _length(request: Request, limit: int) -> int:
    """The most bytes that the body will take, of at most *limit*."""
    declared = request.headers.get("content-length", "")
    return min(int(declared), limit) if declared.isdecimal() else limit
