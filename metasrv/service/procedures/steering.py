"""Reads the locks and poisons that operators look at, and clears a poison."""

from keys.commit.txn import snapshot
from keys.model.poison import Poison, PoisonKey
from keys.model.records import LockMode
from keys.store.kv import ReadableStore
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from metasrv.service.bodies.procedure_shapes import error_body, resource_body
from metasrv.service.bodies.shapes import time_of
from metasrv.service.pages import ListName, PageToken, page_of, seal, unseal
from metasrv.service.procedures.procedures import Shown, control
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from metasrv_base.wire.api.control import LockBody, LockList, LockPlaceBody, PoisonBody, PoisonList
from procedures.engine.control import Command
from procedures.locking.holding import LockClaim
from procedures.scheduling.manager import Manager


async def locks(state: ServerState, path: str, size: int, page_token: str | None) -> LockList:
    """Locks as they are now: a later page shows the state of its keys at its own time."""
    term = await state.leading()
    name = ListName(term.cluster_id, path)
    after = unseal(name, page_token).after if page_token is not None else None
    page = page_of(term.manager.locks.keys(), lambda key: (key,), after, size)
    token = None if page.after is None else seal(name, PageToken(0, page.after))
    shown = tuple(_lock_body(term.manager, key) for key in page.items)
    return LockList(locks=shown, next_page_token=token)


def _lock_body(manager: Manager, key: str) -> LockBody:
    def place(claim: LockClaim, mode: LockMode) -> LockPlaceBody:
        entry = manager.entry(claim.procedure)
        assert entry is not None
        return LockPlaceBody(
            procedure_id=claim.procedure, kind=entry.held.record.kind, mode=mode.value
        )

    line = manager.locks.line(key)
    holds = {claim.procedure: manager.locks.holds(claim.procedure) for claim, _ in line}
    return LockBody(
        key=key,
        holders=tuple(place(claim, mode) for claim, mode in line if holds[claim.procedure]),
        queue=tuple(place(claim, mode) for claim, mode in line if not holds[claim.procedure]),
    )


async def poisons(state: ServerState) -> PoisonList:
    deadline_ms = state.facts.store_deadline_ms
    items, _ = await scan(state.kv, PoisonKey.under(), deadline_ms=deadline_ms)
    rows = readable(PoisonKey, Poison, items, skip_silently)
    return PoisonList(poisons=tuple(_poison_body(row.value) for row in rows))


async def poison(state: ServerState, resource: str) -> PoisonBody:
    return _poison_body(await _poison(state.kv, resource, state.facts.store_deadline_ms))


async def clear(
    state: ServerState, resource: str, command: Command, *, dry_run: bool = False
) -> Shown:
    """Ends the procedure that left it. Again: 404, for it is gone."""
    with only_the_leader():
        term = await state.leading()
        poison = await _poison(term.ports.kv, resource, term.ports.deadline_ms)
        return await control(state, poison.procedure, command, dry_run=dry_run)


async def _poison(kv: ReadableStore, resource: str, deadline_ms: int) -> Poison:
    try:
        key = PoisonKey(resource)
    except ValueError:
        raise NotFound("not-found", what="poison", name=resource) from None
    poison = (await snapshot(kv, key, deadline_ms=deadline_ms)).get(key)
    if poison is None:
        raise NotFound("not-found", what="poison", name=resource)
    return poison


def _poison_body(poison: Poison) -> PoisonBody:
    return PoisonBody(
        resource=resource_body(poison.resource),
        procedure_id=poison.procedure,
        kind=poison.kind,
        step=poison.step,
        error=error_body(poison.error),
        at=time_of(poison.at_ms),
    )
