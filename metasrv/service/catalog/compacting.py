"""Snapshots on request, and pins of the catalog's history: asked for at the leader."""

from keys.catalog.log.revision_pins import StoredRevisionPin, revision_pins
from keys.commit.committer import StaleRead
from keys.commit.txn import Txn, snapshot
from keys.model.snapshot.pins import CatalogPin, CatalogPinKey
from metasrv.leadership.log.log_pins import PINS_MAX, log_pins, stored_pins, user_pin
from metasrv.leadership.log.log_policy import LogPin
from metasrv.leadership.term import Term
from metasrv.service.bodies.shapes import time_of
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.ids import IDENTIFIER
from metasrv_base.wire.api.snapshots import (
    CatalogPinBody,
    PinList,
    PinRequest,
    RevisionPinBody,
    SnapshotBody,
    SnapshotRequestBody,
)


async def make_snapshot(state: ServerState, request: SnapshotRequestBody) -> SnapshotBody:
    """Returns once the snapshot is adopted and what may go is deleted."""
    with only_the_leader():
        term = await state.leading()
        compacted = await term.snapshot_requests.ask(drops_history=request.drop_history)
    return SnapshotBody(
        version=compacted.version,
        made=compacted.made,
        oldest_version=compacted.floor,
        deleted=compacted.deleted,
    )


async def pins(state: ServerState) -> PinList:
    """Everything that keeps the log or old revisions of etcd, whoever set it."""
    with only_the_leader():
        term = await state.leading()
        now_ms, deadline_ms = state.clock.wall_ms(), state.facts.store_deadline_ms
        needed = await log_pins(term, now_ms)
        readers = await revision_pins(state.kv, deadline_ms=deadline_ms)
    snapshots = state.follower.log.snapshots
    return PinList(
        pins=tuple(map(_body, needed)),
        revisions=tuple(_revision_body(pin) for pin in readers if pin.lives(now_ms)),
        oldest_version=state.follower.log.floor,
        snapshot_version=0 if snapshots is None else snapshots.newest.version,
        catalog_version=state.follower.catalog.version,
    )


async def set_pin(
    state: ServerState, context: RequestContext, request: PinRequest
) -> CatalogPinBody:
    """Sets a pin, or renews the one of that name. Raises Refused("history-expired") for a version
    that is not stored, Refused("invalid-request") for one that is to come or below the pin's."""
    _must_be_identifier(request.name)
    with only_the_leader():
        term = await state.leading()
        key = CatalogPinKey(request.name)
        read = await snapshot(state.kv, key, deadline_ms=state.facts.store_deadline_ms)
        before, now_ms = read.get(key), state.clock.wall_ms()
        if before is not None and before.expires_at_ms <= now_ms:
            before = None
        await _must_be_possible(state, term, request, before)
        pin = CatalogPin(
            name=request.name,
            version=request.version,
            reason=request.reason,
            by=context.principal,
            since_ms=now_ms if before is None else before.since_ms,
            expires_at_ms=now_ms + 1_000 * request.expires_in_s,
        )
        await _commit(term, Txn.on(read).put(key, pin))
        return _body(user_pin(pin))


async def delete_pin(state: ServerState, name: str) -> None:
    """Raises NotFound."""
    _must_be_identifier(name)
    with only_the_leader():
        term = await state.leading()
        key = CatalogPinKey(name)
        read = await snapshot(state.kv, key, deadline_ms=state.facts.store_deadline_ms)
        if read.get(key) is None:
            raise NotFound("not-found", what="pin", name=name)
        await _commit(term, Txn.on(read).delete(key))


async def _commit(term: Term, txn: Txn) -> None:
    try:
        await term.committer.commit(txn)
    except StaleRead as error:
        raise Conflict("object-locked", what="pin", reason="it was changed meanwhile") from error


async def _must_be_possible(
    state: ServerState, term: Term, request: PinRequest, before: CatalogPin | None
) -> None:
    newest, oldest = state.follower.catalog.version, state.follower.log.floor
    if request.version < oldest:
        raise Refused("history-expired", version=request.version, oldest=oldest)
    if request.version > newest:
        raise Refused("invalid-request", expected=f"at most {newest}", found=request.version)
    if before is not None and request.version < before.version:
        expected = f"at least {before.version}, as before"
        raise Refused("invalid-request", expected=expected, found=request.version)
    if before is None and len(await stored_pins(term)) >= PINS_MAX:
        raise Refused("invalid-request", expected=f"at most {PINS_MAX} pins", found=PINS_MAX)


def _must_be_identifier(name: str) -> None:
    if IDENTIFIER.fullmatch(name) is None:
        raise Refused("invalid-identifier", found=name)


def _revision_body(pin: StoredRevisionPin) -> RevisionPinBody:
    return RevisionPinBody(
        what=pin.value.what,
        server=pin.value.server,
        revision=pin.revision,
        since=time_of(pin.value.since_ms),
        expires_at=time_of(pin.value.expires_at_ms),
    )


def _body(pin: LogPin) -> CatalogPinBody:
    expires_at = None if pin.expires_at_ms is None else time_of(pin.expires_at_ms)
    return CatalogPinBody(
        what=pin.what,
        version=pin.version,
        since=time_of(pin.since_ms),
        reason=pin.reason,
        expires_at=expires_at,
    )
