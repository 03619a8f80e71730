"""Requests of holders of schema leases, checked before the registry takes them; and the list of
leases."""

from collections.abc import Iterator, Mapping

from keys.catalog.catalog import Catalog
from metasrv.holders.holder_registry import HolderEntry
from metasrv.service.bodies.shapes import time_of
from metasrv.service.cluster.internal import TEXT_CHARS_MAX
from metasrv.service.named import is_node_id, no_node_id
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Refused
from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
    Pin,
    PinBody,
    RefusedBody,
    SchemaLeaseBody,
    SchemaLeaseList,
    SignOffAnswer,
)
from metasrv_base.wire.http.addresses import is_base_url
from metasrv_base.wire.problem.problems import FieldError, refuse


async def register(
    state: ServerState, holder_id: str, request: HolderRegisterRequest
) -> HolderRegisterAnswer:
    """Raises NotLeader with the leader's URL where another server leads."""
    term = state.led()
    refuse(tuple(_wrong_registration(holder_id, request)))
    return await term.holders.register(request)


async def acknowledge(
    state: ServerState, holder_id: str, request: AcknowledgeRequest
) -> AcknowledgeAnswer:
    """Raises NotLeader, as `register`."""
    term = state.led()
    refuse((*_wrong_holder(holder_id, request.holder_id), *_wrong_pins(request.pinned)))
    return term.holders.acknowledge(request)


async def sign_off(state: ServerState, holder_id: str, incarnation: str) -> SignOffAnswer:
    """Raises NotLeader, as `register`, and NotFound for who is not registered."""
    term = state.led()
    refuse(tuple(_wrong_holder(holder_id, holder_id)))
    return await term.holders.sign_off(holder_id, incarnation)


async def leases(
    state: ServerState, table_id: int | None, older_than: int | None
) -> SchemaLeaseList:
    """All holders; those that use the table; or those that a step waits for which needs the table
    at no schema version below *older_than*."""
    if older_than is not None and table_id is None:
        raise Refused("invalid-request", expected="a table with older_than")
    term = await state.leading()
    catalog, now_ms = state.follower.catalog, state.clock.mono_ms()
    entries = term.holders.book.entries()
    if table_id is not None and older_than is not None:
        behind = {laggard.holder for laggard in term.holders.behind(table_id, older_than)}
        entries = tuple(entry for entry in entries if entry.holder.holder_id in behind)
    elif table_id is not None:
        entries = tuple(entry for entry in entries if table_id in entry.pinned)
    return SchemaLeaseList(
        holders=tuple(_lease_body(entry, catalog, now_ms) for entry in entries),
        refused=tuple(_refused(term.nodes.refused(), catalog)),
        catalog_version=catalog.version,
    )


def _lease_body(entry: HolderEntry, catalog: Catalog, now_ms: int) -> SchemaLeaseBody:
    holder = entry.holder
    return SchemaLeaseBody(
        holder_id=holder.holder_id,
        incarnation=holder.incarnation,
        address=holder.address,
        version=holder.version,
        registered_at=time_of(holder.registered_at_ms),
        have=entry.have,
        acknowledged_ms_ago=None if entry.heard_ms is None else max(0, now_ms - entry.heard_ms),
        lease_left_ms=max(0, entry.free_at_ms - now_ms),
        pinned=tuple(_pin_body(pin, catalog) for _, pin in sorted(entry.pinned.items())),
        statement_p99_ms=entry.statement_p99_ms,
    )


def _pin_body(pin: Pin, catalog: Catalog) -> PinBody:
    table = catalog.tables.get(pin.table_id)
    return PinBody(**pin.model_dump(), table=None if table is None else table.info.full_name)


def _refused(
    counts: Mapping[tuple[int, str | None], int], catalog: Catalog
) -> Iterator[RefusedBody]:
    for (table_id, holder), count in sorted(counts.items(), key=str):
        table = catalog.tables.get(table_id)
        yield RefusedBody(
            table_id=table_id,
            table=None if table is None else table.info.full_name,
            holder_id=holder,
            count=count,
        )


def _wrong_registration(holder_id: str, request: HolderRegisterRequest) -> Iterator[FieldError]:
    yield from _wrong_holder(holder_id, request.holder_id)
    if not is_base_url(request.address):
        detail = "http or https, the host of a holder and a port, and nothing else"
        yield FieldError(pointer="/address", detail=detail)
    for name, text in (("incarnation", request.incarnation), ("version", request.version)):
        if not 0 < len(text) <= TEXT_CHARS_MAX:
            yield FieldError(pointer=f"/{name}", detail=f"1 to {TEXT_CHARS_MAX} characters")
    yield from _wrong_pins(request.pinned)


def _wrong_holder(holder_id: str, body_id: str) -> Iterator[FieldError]:
    if not is_node_id(holder_id):
        yield no_node_id("/holder_id")
    elif body_id != holder_id:
        yield FieldError(pointer="/holder_id", detail=f"the path says {holder_id}")


def _wrong_pins(pinned: tuple[Pin, ...]) -> Iterator[FieldError]:
    table_ids: set[int] = set()
    for position, pin in enumerate(pinned):
        if pin.table_id in table_ids:
            here = f"/pinned/{position}/table_id"
            yield FieldError(pointer=here, detail="the table is listed twice")
        table_ids.add(pin.table_id)
