"""batch: applies many commands in one version of the catalog, all of them or none.

Regions of new tables are made first, as in create_table. Each command is then planned on the result
of those before it, and one transaction applies them all. It hides a table that is dropped and frees
its name; statements of that table end later, and children remove it. After that transaction the
batch holds no lock, and cannot be cancelled (docs/decisions/0220).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TypeVar

from pydantic import Field

from keys.catalog.catalog import Catalog
from keys.commit.change import change
from keys.commit.txn import NOTHING, Txn
from keys.model.catalogs import CatalogLimits
from keys.model.log import Entry, StagedRef, TableAltered
from keys.model.records import Lock, Resource
from keys.model.tables import TableInfo, TableInfoKey, TableRoute
from keys.value import is_none
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.turns import Turns, at_once, by_turns, slices
from metasrv_base.elements.graphs import TABLE
from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.wire.api.batches import BatchBody
from procedures.commands.in_order import BatchCommand, planned
from procedures.commands.table_commands import CreateTableCommand
from procedures.context import Context
from procedures.kinds.batch.large import CatalogPlan, is_large, plan_by_catalog
from procedures.kinds.batch.members import Change, Member, command_of, locks_of
from procedures.kinds.batch.reading import read
from procedures.kinds.batch.staged_members import StagedMembers, members_in, staged
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG, CreateCatalog
from procedures.kinds.tables.create_table import (
    CREATE_TABLE,
    CreateTable,
    is_of_another,
    while_registered,
)
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.kinds.tables.rename_table import RenameTable
from procedures.locking.locks import distinct
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Staging, Step
from procedures.steps.copies.new_regions import NewTable, drop_new_regions, make_regions
from procedures.steps.copies.new_routes import elsewhere, hindered
from procedures.steps.paged_children import at_most, child_id, rest_before_again
from procedures.tenant_claim import TenantClaim

CHILDREN_MAX = 32  # under way at once: each keeps a record until it is over
DEADLINE_MS = 600_000
"""Limit of the time until its one transaction: it may wait for locks and make many regions."""
DIGEST_CHARS = 16
DECODED_AT_ONCE = 64
"""Commands that are decoded in one turn of the event loop: some 15 ms."""

S = TypeVar("S", bound=ProcedureState)


class CommandBatch(ProcedureState):
    members: tuple[Member, ...]
    """Empty once they have taken effect, and where they are in parts."""
    staged: StagedMembers | None = Field(default=None, exclude_if=is_none)
    """The commands' place, if the record cannot hold them; None once they have taken effect."""
    applied: tuple[bool, ...] = ()
    """Whether each command changed anything; known once they have taken effect."""
    renamed: int | None = None
    """A table that got another name: every frontend must know of this version."""
    drops: tuple[int, ...] = ()
    """Tables that were dropped and are not cleared away yet."""
    rounds: int = 0
    """Number of times that a child has failed to clear a table away."""


async def make(state: CommandBatch, context: Context) -> Outcome[CommandBatch]:
    """Makes the regions of new tables; then all commands take effect in one transaction."""
    state = await _with_members(state, context)
    await by_turns(_decoded(state.members))
    commands = [command_of(member, context.procedure) for member in state.members]
    plan = await plan_by_catalog(commands, context)
    is_too_large = await is_large(plan, state, context)
    snapshot = None if is_too_large else await read(commands, context)
    if snapshot is None:
        return await _make_large(state, plan, context)
    plans = at_once(planned(commands, snapshot))  # no more than one transaction compares
    entries = tuple(entry for some in plans for entry in some)
    state = state.model_copy(update={"applied": tuple(map(bool, plans))})
    if not entries:
        return _done(state)
    published, routes = await _with_regions(commands, state, context)
    if published is not commands:
        plans = at_once(planned(published, snapshot))
        entries = tuple(entry for some in plans for entry in some)
    txn = change(snapshot.read, *entries)
    for keys in snapshot.ranges:
        txn = txn.while_unchanged(keys, snapshot.read.revision)
    txn = txn.also(await while_registered(routes, context))
    return _taken(state, entries, txn)


def _decoded(members: Sequence[Member]) -> Turns[None]:
    """Makes the states of the commands, some in a turn: each keeps its own."""
    for some in slices(members, DECODED_AT_ONCE):
        for member in some:
            if isinstance(member, Change):
                member.decoded  # noqa: B018  # a property that is computed once
        yield


async def _with_members(state: CommandBatch, context: Context) -> CommandBatch:
    if state.staged is None:
        return state
    return state.model_copy(update={"members": await members_in(state.staged, context)})


async def _make_large(
    state: CommandBatch, large: CatalogPlan, context: Context
) -> Outcome[CommandBatch]:
    """The same for what one transaction cannot write or compare: the version happens, then its
    keys follow."""
    state = state.model_copy(update={"applied": large.applied})
    if not large.entries:
        return _done(state)
    commands, routes = await _with_regions(large.commands, state, context)
    if commands is not large.commands:
        large = await plan_by_catalog(commands, context)
    registered = await while_registered(routes, context)
    return _taken(state, large.entries, large.txn(context).also(registered))


def _taken(state: CommandBatch, entries: Iterable[Entry], txn: Txn) -> Outcome[CommandBatch]:
    """The next step once *entries* are true. Names that others may now take are free."""
    renamed = next((each.table_id for each in _changes(state, RenameTable)), None)
    drops = {
        entry.info.table_id
        for entry in entries
        if isinstance(entry, TableAltered) and entry.info.dropping is not None
    }
    if renamed is None and not drops:
        return _done(state, txn)
    update = {"members": (), "staged": None, "renamed": renamed, "drops": tuple(sorted(drops))}
    step = "clear" if renamed is None else "settle"
    return Goto(step, state.model_copy(update=update), txn, keeps=())


async def drop_regions(state: CommandBatch, context: Context) -> None:
    """A node that cannot be reached is told by the leader's heartbeat answers when it is back."""
    state = await _with_members(state, context)
    tables = _changes(state, CreateTable)
    own = [table for table in tables if not is_of_another(table, context)]
    await drop_new_regions(context, [NewTable(table.info, table.route) for table in own])


async def settle(state: CommandBatch, context: Context) -> Outcome[CommandBatch]:
    """Waits until every frontend knows the new names."""
    assert state.renamed is not None
    await context.drained(state.renamed, None)
    return Goto("clear", state) if state.drops else _done(state)


async def clear(state: CommandBatch, context: Context) -> Outcome[CommandBatch]:
    """Has children remove some more of the dropped tables. A table whose child failed is tried
    again after the others."""
    page, rest = state.drops[:CHILDREN_MAX], state.drops[CHILDREN_MAX:]
    if state.rounds:
        await rest_before_again(context, state.rounds)
    infos = await _standing(page, context)
    await fan_out([partial(_begin, state, info, context) for info in infos], at_once=CHILDREN_MAX)
    await at_most(context, 0)
    left = tuple(info.table_id for info in await _standing(page, context))
    state = state.model_copy(update={"drops": (*rest, *left), "rounds": state.rounds + bool(left)})
    return Goto("clear", state) if state.drops else _done(state)


async def _standing(table_ids: Iterable[int], context: Context) -> tuple[TableInfo, ...]:
    """The tables, of these ids, that this batch has dropped and nobody has cleared away."""
    keys = [TableInfoKey(table_id) for table_id in table_ids]
    snapshot = await context.snapshot(*keys)
    infos = (snapshot.get(key) for key in keys)
    return tuple(info for info in infos if info and info.dropping == context.procedure)


async def _begin(state: CommandBatch, info: TableInfo, context: Context) -> None:
    child = DropTable(
        catalog=info.catalog,
        schema_name=info.schema_name,
        name=info.name,
        table_id=info.table_id,
        freed=True,
    )
    number = child_id(context.procedure, state.rounds, info.table_id)
    await context.children.submit(number, DROP_TABLE.name, child.model_dump(mode="json"))


def _done(state: CommandBatch, txn: Txn = NOTHING) -> Done[CommandBatch]:
    return Done(state, {"applied": list(state.applied)}, txn)


def _changes(state: CommandBatch, of: type[S]) -> Iterator[S]:
    """States of the commands of one kind."""
    for member in state.members:
        if isinstance(member, Change) and isinstance(own := member.decoded, of):
            yield own


def _created(state: CommandBatch) -> tuple[NewTable, ...]:
    return tuple(NewTable(table.info, table.route) for table in _changes(state, CreateTable))


async def _with_regions(
    commands: Sequence[BatchCommand], state: CommandBatch, context: Context
) -> tuple[Sequence[BatchCommand], tuple[TableRoute, ...]]:
    """Makes the regions of new tables. Returns the commands with the routes that are published, the
    same ones where those are as planned; and all of these routes.

    Raises Conflict `node-not-eligible` where a node on which they were placed has died, or
    answers no orders."""
    tables = _created(state)
    _must_be_placed(tables, context)
    routes = await make_regions(context, tables)
    changed = {
        table.info.table_id: route
        for table, route in zip(tables, routes, strict=True)
        if route is not table.route
    }
    if not changed:
        return commands, routes
    return [_publishing(changed, command) for command in commands], routes


def _must_be_placed(tables: Iterable[NewTable], context: Context) -> None:
    """Sent again, the batch is placed on nodes that live and answer orders: its commands may be in
    parts, which do not change."""
    alive, able = context.alive_nodes(), context.answering_nodes()
    for table in tables:
        left = hindered(table.route, able)
        if left and not hindered(table.route, alive) and not _can_be_elsewhere(table, context):
            continue
        for region in left:
            reasons = {
                node: "it answers no orders"
                if node in alive
                else "it has died since a new region was placed on it"
                for node in region.nodes
                if node not in able
            }
            facts = {"table": table.info.full_name, "region_id": region.region_id}
            raise Conflict("node-not-eligible", reasons=reasons, **facts)


def _can_be_elsewhere(table: NewTable, context: Context) -> bool:
    """Whether its regions that cannot be made can be placed on other nodes. If they cannot, the
    nodes that answer no orders may answer again."""
    catalog, nodes = context.ports.applied(), context.ports.placement.nodes()
    try:
        elsewhere(table.info, table.route, catalog, nodes)
    except Unavailable:
        return False
    return True


def _publishing(routes: Mapping[int, TableRoute], command: BatchCommand) -> BatchCommand:
    if isinstance(command, CreateTableCommand) and command.info.table_id in routes:
        return replace(command, route=routes[command.info.table_id])
    return command


def in_parts(state: CommandBatch, parts: StagedRef, catalog: Catalog) -> CommandBatch:
    """The state that a record can hold of a batch whose commands are in *parts*."""
    own = staged(state.members, parts, claims(state, catalog))
    return state.model_copy(update={"members": (), "staged": own})


def locks(state: CommandBatch) -> tuple[Lock, ...]:
    if state.staged is not None:
        return state.staged.locks
    return distinct(*(lock for member in state.members for lock in locks_of(member)))


def resource(state: CommandBatch) -> Resource:
    """The id is a digest of the commands."""
    if state.staged is not None:
        digest, count = state.staged.parts.digest[:DIGEST_CHARS], state.staged.count
    else:
        text = state.model_dump_json(include={"members"})
        digest = sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
        count = len(state.members)
    return Resource(type="batch", id=digest, name=f"{count} command{'s' * (count != 1)}")


def claims(state: CommandBatch, catalog: Catalog) -> tuple[TenantClaim, ...]:
    """Tables that the same batch drops count until they are cleared away.

    Asked at each submission and takeover, so tables are not decoded: a batch may make thousands.
    """
    if state.staged is not None:
        return state.staged.tenant_claims()
    tables: dict[str, dict[int, int]] = {}
    limits: dict[str, CatalogLimits] = {}
    for member in state.members:
        if not isinstance(member, Change):
            continue
        if member.kind == CREATE_TABLE.name:
            info, regions = member.state["info"], member.state["route"]["region_routes"]
            tables.setdefault(info["catalog"], {})[info["table_id"]] = len(regions)
        elif member.kind == CREATE_CATALOG.name:
            new = CreateCatalog.model_validate(member.state).info
            if new.limits is not None:
                limits[new.name] = new.limits
    return tuple(
        TenantClaim(name, tables.get(name, {}), limits.get(name))
        for name in sorted(tables.keys() | limits.keys())
    )


BATCH = Kind(
    name="batch",
    state=CommandBatch,
    steps={
        "make": Step(make, to=frozenset({"settle", "clear"}), undo=drop_regions, ends=True),
        "settle": Step(settle, to=frozenset({"clear"}), ends=True, waits=True),
        "clear": Step(clear, to=frozenset({"clear"}), ends=True, waits=True),
    },
    no_return="make",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=DEADLINE_MS,
    graphs=(TABLE,),
    report=BatchBody,
    claims=claims,
    staging=Staging(
        lambda state: state.members,
        in_parts,
        lambda state: None if state.staged is None else state.staged.parts,
    ),
)
