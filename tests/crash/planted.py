"""Mistakes of a server, each planted at a seam between it and its world."""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from keys.commit.committer import Committed, Committer
from keys.commit.staging import MEMBERS, PartsReference, StagedPart, parts_of
from keys.commit.txn import Txn
from keys.model.cluster import LeaderKey
from keys.model.elements import Element
from keys.model.log import CatalogVersionKey, StagedRef
from keys.model.origin import Origin
from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.model.tables import DatanodeTableKey, TableInfo, TableRoute
from keys.store.kv import Get, KeyPage, Kv, LeaseId, Request, TxnAnswer, Watched
from keys.store.memory import MemoryKv
from keys.value import StoredPart
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Unknown
from metasrv_base.wire.node.orders import OpenRegion
from procedures.context import Context
from procedures.elements.element_targets import ElementTarget, to_last_undoable
from procedures.engine.active_procedure import ActiveProcedure
from procedures.kinds.alter import alter_table
from procedures.kinds.copies.remove_copy import REMOVE_COPY
from procedures.kinds.failover import failover_table
from procedures.kinds.moves.copy_move import ChildNumber, removal, run_child
from procedures.kinds.registry import KINDS
from procedures.locking.holding import LockTable
from procedures.machine import Goto, Kind, Outcome
from procedures.scheduling import intake
from procedures.scheduling.manager import Manager
from procedures.steps import region_orders, transitions
from procedures.steps.copies import new_regions
from procedures.steps.region_orders import OrderAnswers
from tests.crash.enumeration import Patch

# ---- in what is sent


def without(refused: Callable[[bytes], bool]) -> Callable[[Request], Request]:
    """Requests that do not compare certain keys."""

    def alter(request: Request) -> Request:
        kept = tuple(compare for compare in request.compares if not refused(compare.key))
        return replace(request, compares=kept) if request.writes else request

    return alter


def is_fence(key: bytes) -> bool:
    return key == bytes(LeaderKey())


def is_bookkeeping(key: bytes) -> bool:
    """Whether *key* belongs to procedures; the other keys of a read set are metadata."""
    families = (ProcedureKey, ProcedureHistoryKey, IdempotencyKey)
    return any(start <= key < end for start, end in (family.under() for family in families))


def is_record(key: bytes) -> bool:
    start, end = ProcedureKey.under()
    return start <= key < end


def is_read_set(key: bytes) -> bool:
    return not (is_fence(key) or is_bookkeeping(key) or key == bytes(CatalogVersionKey()))


def without_index(request: Request) -> Request:
    """A route whose reverse index is forgotten."""
    start, end = DatanodeTableKey.under()
    kept = tuple(write for write in request.writes if not start <= write.key < end)
    return replace(request, writes=kept)


# ---- between a server and the store


@dataclass
class Client:
    """Passes everything on; a bug overrides `txn`."""

    kv: Kv

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        return await self.kv.txn(request, deadline_ms=deadline_ms)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        return await self.kv.range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self.kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self.kv.grant(ttl_ms, deadline_ms=deadline_ms)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self.kv.keep_alive(lease, deadline_ms=deadline_ms)

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self.kv.revoke(lease, deadline_ms=deadline_ms)

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self.kv.compact(revision, deadline_ms=deadline_ms)

    async def close(self) -> None:
        await self.kv.close()


class RetryingClient(Client):
    """Sends a transaction again by itself, and tells the last answer as if it were the first."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        try:
            return await super().txn(request, deadline_ms=deadline_ms)
        except Unknown:
            return await super().txn(request, deadline_ms=deadline_ms)


class SplittingClient(Client):
    """The effect of a step first, then the record that says so: two transactions."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        records = tuple(write for write in request.writes if is_bookkeeping(write.key))
        effect = tuple(write for write in request.writes if not is_bookkeeping(write.key))
        if not records or not effect:
            return await super().txn(request, deadline_ms=deadline_ms)
        first = await super().txn(replace(request, writes=effect), deadline_ms=deadline_ms)
        if not first.succeeded:
            return first
        left = [one for one in request.compares if is_fence(one.key) or is_bookkeeping(one.key)]
        second = Request(tuple(left), records, request.reads)
        return await super().txn(second, deadline_ms=deadline_ms)


class ComparesFenceByValue(MemoryKv):
    """Takes the seat for ours if what stands in it is what we wrote, whoever wrote it."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        compares = tuple(
            one._replace(mod_revision=self._same(one.key, one.mod_revision))
            for one in request.compares
        )
        return await super().txn(replace(request, compares=compares), deadline_ms=deadline_ms)

    def _same(self, key: bytes, revision: int) -> int:
        now = self._store.get(key)
        if not is_fence(key) or now is None:
            return revision
        then = next(self._store.scan(key, None, revision), None)
        return now.mod_revision if then and then.value == now.value else revision


# ---- in the committer


class StagesLate(Committer):
    """The commands of a batch are written as parts once the record that names them is."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self._late: dict[str, list[StagedPart]] = {}

    async def stage(self, batch: str, what: str, items: Iterable[StoredPart]) -> StagedRef:
        if what != MEMBERS:
            return await super().stage(batch, what, items)
        reference = PartsReference(batch)
        late = list(parts_of(batch, what, items, part_bytes=self.sizes.part_bytes))
        for part in late:
            reference.add(part.raw)
        self._late[batch] = late
        return reference.made()

    async def commit(
        self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
    ) -> Committed:
        committed = await super().commit(txn, procedure=procedure, origin=origin)
        for key, raw in self._late.pop(procedure or "", ()):
            await super().commit(Txn().expecting(key, 0).put_stored(key, raw))
        return committed


# ---- in the kinds


def with_step(kind: str, step: str, **changes: Any) -> dict[str, Kind[Any]]:
    old = KINDS[kind]
    row = replace(old.steps[step], **changes)
    return {**KINDS, kind: replace(old, steps={**old.steps, step: row})}


def discarding_first() -> dict[str, Kind[Any]]:
    """A failover that deletes the old folders before the route has let go of them."""
    steps = KINDS["failover_table"].steps

    async def release(state: Any, at: Context) -> Outcome[Any]:
        await steps["discard"].act(state, at)
        return await steps["release"].act(state, at)

    async def adopt(state: Any, at: Context) -> Outcome[Any]:
        return Goto("move" if state.to_move else "release", state)

    broken = with_step("failover_table", "release", act=release)
    old = broken["failover_table"]
    row = replace(old.steps["adopt"], act=adopt)
    return {**broken, "failover_table": replace(old, steps={**old.steps, "adopt": row})}


def removing_first() -> dict[str, Kind[Any]]:
    """A move of a copy that removes the source before it adds the copy at the destination."""
    check = KINDS["move_copy"].steps["check"]

    async def check_and_remove(state: Any, at: Context) -> Outcome[Any]:
        following = await check.act(state, at)
        copy = removal(state).model_copy(update={"forced": True, "replaced_by": None})
        await run_child(at, (0, ChildNumber.REMOVE), REMOVE_COPY.name, copy)
        return following

    return with_step("move_copy", "check", act=check_and_remove)


# ---- in the manager


def nobody(*_: object) -> list[ActiveProcedure]:
    """A new leader takes up nothing that it finds."""
    return []


def granted_to_all(self: LockTable, procedure: str) -> bool:
    """Whoever is in the records goes on: nobody looks who holds which lock."""
    return True


_OWN = Manager._own


async def released_in_finally(self: Manager, entry: ActiveProcedure) -> None:
    """The lock goes with the task, whatever became of the procedure."""
    try:
        await _OWN(self, entry)
    finally:
        if entry.held.procedure in self._floor.entries:
            self._floor.forget(entry)
            self._schedule()


# ---- in an online change


async def told_nobody(*_: object, **__: object) -> OrderAnswers:
    """No region hears of a floor, or of what comes."""
    return OrderAnswers({}, {})


async def waited_for_nobody(self: Context, table_id: int, schema_version: int) -> None:
    """A floor without a wait: it stops whoever is behind in the middle of a transaction."""


def straight_to_write_only(move: ElementTarget, element: Element) -> ElementState | None:
    return None if element.state is ElementState.WRITE_ONLY else ElementState.WRITE_ONLY


def past_write_only(move: ElementTarget, element: Element) -> ElementState | None:
    if move.adds and element.state in (ElementState.DELETE_ONLY, ElementState.PUBLIC):
        return None if element.state is ElementState.PUBLIC else ElementState.PUBLIC
    return to_last_undoable(move, element)


def none_dead(info: TableInfo) -> tuple[int, ...]:
    """Regions are not told which indexes are gone."""
    return ()


async def outwaited(*_: object) -> None:
    """Nobody's lease is waited for."""


def without_floor(order: Callable[..., Any]) -> Callable[..., Any]:
    """An order that opens a region, and tells it of no floor."""

    def made(**facts: Any) -> Any:
        return order(**{**facts, "schema_floor": 0})

    return made


def as_planned(route: TableRoute, absent: object) -> TableRoute:
    """A copy that has not answered is in the set."""
    return route


def one_is_enough(count: int) -> int:
    return 1


FLOOR_NOT_IN_OPEN: Patch = (region_orders, "OpenRegion", without_floor(OpenRegion))
DEAD_NOT_TOLD: Patch = (transitions, "dead_indexes", none_dead)
ALL_IN_SYNC: Patch = (new_regions, "with_learners", as_planned)
NO_MAJORITY: Patch = (new_regions, "majority", one_is_enough)
NOT_OUTWAITED: Patch = (failover_table, "outwait_leases", outwaited)
NOT_TOLD: Patch = (transitions, "tell", told_nobody)
NOT_DRAINED: Patch = (Context, "drained", waited_for_nobody)
NO_DELETE_ONLY: Patch = (alter_table, "to_last_undoable", straight_to_write_only)
NO_WRITE_ONLY: Patch = (alter_table, "to_last_undoable", past_write_only)
NOT_RESUMED: Patch = (intake, "entries_of", nobody)
NOT_LOCKED_AGAIN: Patch = (LockTable, "holds", granted_to_all)
RELEASED_IN_FINALLY: Patch = (Manager, "_own", released_in_finally)
