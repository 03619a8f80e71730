"""/v1/catalog/snapshots and /v1/catalog/pins: how far back the catalog's history reaches, and what
keeps it."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from metasrv.api.documents.documented import BODY, LEADER, OF_LEADER, QUERY, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.service.catalog import compacting
from metasrv_base.wire.api.snapshots import (
    CatalogPinBody,
    PinList,
    PinRequest,
    SnapshotBody,
    SnapshotRequestBody,
)

CHANGE = (*LEADER, *BODY, "bad-idempotency-key", "object-locked", "storage-full", "unsupported")

router = APIRouter(prefix="/v1/catalog", tags=["versions"])


@router.post("/snapshots", response_model=SnapshotBody, responses=problems(*CHANGE))
async def make_snapshot(
    state: Server, query: Annotated[NoQuery, Query()], request: SnapshotRequestBody
) -> Response:
    """Make a snapshot of the catalog, and delete the log that it replaces as far as it may go."""
    return answer(await compacting.make_snapshot(state, request))


@router.get("/pins", response_model=PinList, responses=problems(*OF_LEADER, *QUERY))
async def list_pins(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """List what keeps the catalog's log: pins, holders of schema leases and procedures."""
    return answer(await compacting.pins(state))


@router.post(
    "/pins",
    response_model=CatalogPinBody,
    responses=problems(*CHANGE, "history-expired", "invalid-identifier"),
)
async def set_pin(state: Server, context: AskedFor, request: PinRequest) -> Response:
    """Keep a version of the catalog until the pin expires. Sent again, the pin is renewed."""
    return answer(await compacting.set_pin(state, context, request))


@router.delete(
    "/pins/{name}",
    status_code=204,
    response_class=Response,
    responses=problems(*LEADER, *QUERY, "invalid-identifier", "object-locked", "storage-full"),
)
async def delete_pin(state: Server, name: str, query: Annotated[NoQuery, Query()]) -> Response:
    """Delete a pin."""
    await compacting.delete_pin(state, name)
    return Response(status_code=204)
