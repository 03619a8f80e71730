"""The node protocol as routes: parse, call one method of the service, shape the answer."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Depends, Query, Request, Response

from dataplane.datanode.answers import Alive, NodeRegions, RegionBody, VersionBody
from dataplane.datanode.regions.scan_slots import ReaderKind
from dataplane.datanode.service import DatanodeService
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.http.asgi import read_body
from metasrv_base.wire.limits import BATCH_BYTES_MAX
from metasrv_base.wire.model import INT64_END, REGION_ID_CHARS_MAX, RegionId
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory
from metasrv_base.wire.node.batches import (
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
    GetRows,
    Rows,
    ScanRows,
)
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import OrderRequest, OrderResponse
from serving.timed_stream import Begun, TimedStream, whole_answer

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
IPC_OVERHEAD_BYTES_MAX = 1 << 20
"""The most bytes of an Arrow stream around its buffers: schema, metadata, padding."""

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

_ARROW_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An Arrow IPC stream with a `BatchHeader` in its schema's metadata.",
        "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}},
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


@node.get("/inventory")
async def list_inventory(
    service: ServiceDep,
    first: Annotated[RegionId, Query()] = "0",
    last: Annotated[RegionId, Query()] = str(INT64_END - 1),
) -> Inventory:
    """The folders of regions on the disk, by region, with their fences and manifests."""
    return await service.adoption.inventory(int(first), int(last))


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
    """The read-only inputs of other roots that a job must bring over."""
    return await service.rows.borrowed(region)


@node.get("/regions/{region_id}/snapshot")
async def list_snapshot(
    region: RegionDep,
    service: ServiceDep,
    mark: Annotated[str, Query(min_length=1, max_length=128)],
    index: Annotated[Sequence[int], Query(max_length=64)] = (),
    all: Annotated[bool, Query()] = False,
) -> Snapshot:
    """Files that hold all rows as of an open mark, and the entries of the indexes that are named,
    or with `all` of whatever index it holds any; what is in memory is flushed first."""
    return await service.rows.snapshot(region, mark, None if all else index)


@node.post("/regions/{region_id}/batch", response_model=BatchResult, openapi_extra=_ARROW_BODY)
async def write_batch(request: Request, region: RegionDep, service: ServiceDep) -> Response:
    """An atomic batch of puts and deletes; durable when it is answered."""
    with service.rows.room_for(_length(request)):
        body = await read_body(request.receive, BATCH_BYTES_MAX + IPC_OVERHEAD_BYTES_MAX)
        done = await service.rows.write(region, body)
    return Response(done.model_dump_json(), media_type=JSON)


@node.post("/regions/{region_id}/get", response_model=Rows, responses=_ARROW_ANSWER)
async def get_rows(
    query: GetRows, request: Request, region: RegionDep, service: ServiceDep
) -> Response:
    """Live rows, or entries of an index, by key and in key order; missing keys are left out."""
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


def _length(request: Request) -> int:
    """The most bytes that the body will take."""
    limit = BATCH_BYTES_MAX + IPC_OVERHEAD_BYTES_MAX
    declared = request.headers.get("content-length", "")
    return min(int(declared), limit) if declared.isdecimal() else limit
