"""Tables with one copy under writers and readers, on nodes that are drained one after the other,
while nodes and leaders die, stand still and are cut off. One of the tables is dropped meanwhile and
undropped again. No acknowledged row is lost, no read is stale, and every region has one copy again
at the end."""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from metasrv.sdk.control.operations import NodeBook
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.cluster import NodeBody
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import TableBody
from tests.sim.checks.copy_invariants import CopyGhost
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Known
from tests.sim.clients.writers import Writer
from tests.sim.cluster import faults
from tests.sim.cluster.faults import Fault
from tests.sim.cluster.world import World
from tests.sim.length import SHORT, Life
from tests.sim.plots.copies.copy_faults import node_is_cut_off, nodes_are_cut_one_way, regions_of
from tests.sim.scenario import SETTLE_MS_MAX, Plot

DRAINED = replace(
    SHORT,
    name="drained",
    nodes=4,
    writers=2,
    users=0,
    scans=0,
    statements=40,
    changes=0,
    owned=5,
    reads=8,
    faults_min=2,
    faults_max=5,
    faults_ms=30_000,
)
THINK_MS = 3_000
DRAIN_MS_MAX = 120_000
LOOK_MS = 500
DROPPED_MS = 30_000
DROPS = 3
DROPPED = "t1"
CANCELLED = 0.2
"""Share of the drains that are cancelled."""
BEGUN = "a node with only copies that was drained"
MOVED_DROPPED = "a region whose leader changed while its table was dropped"
EMPTIED = "a drain that left nothing on its node"
DRAIN_FAULTS: tuple[Fault, ...] = (
    *(nodes_are_cut_one_way, node_is_cut_off, faults.link_is_cut, faults.network_storms),
    *(faults.node_stands_still, faults.node_dies, faults.node_loses_power),
    *(faults.node_dies_at_its_disk, faults.node_dies_twice, faults.disk_is_full),
    *(faults.leader_dies, faults.leader_dies, faults.leader_stands_still),
    *(faults.leader_dies_writing, faults.store_storms, faults.store_is_silent),
)


@dataclass
class Drainer:
    """An operator who drains the node that leads a region, waits a while for that, or cancels it,
    and puts the node into service again."""

    session: Session
    known: Known

    def __post_init__(self) -> None:
        self.book = NodeBook(self.session.service)

    async def run(self, changes: int) -> None:
        for _ in range(changes):
            await self.session.think(THINK_MS)
            node = await self._leader()
            if node is not None:
                await self._drain(node)
                await pursued(self.session, partial(self._uncordon, node))

    async def _leader(self) -> str | None:
        try:
            route = await self.session.tables.route(self.known.name)
        except MetaError:
            return None
        return self.session.random.choice(list(route.regions)).leader

    async def _drain(self, node: str) -> None:
        session = self.session
        end = await pursued(session, partial(self._begin, node))
        if end.value is None:
            return
        session.count(BEGUN)
        if session.random.random() < CANCELLED:
            await session.think(THINK_MS)
            await pursued(session, partial(self._cancel, end.value.id))
        for _ in range(DRAIN_MS_MAX // LOOK_MS):
            await session.think(2 * LOOK_MS)
            try:
                procedure = await session.procedures.get(end.value.id)
            except MetaError:
                continue
            if procedure.done:
                is_empty = (procedure.result or {}).get("left") == []
                session.network.weather.sometimes[EMPTIED] += is_empty
                return

    async def _begin(self, node: str, key: str) -> ProcedureBody:
        return await self.book.drain(node, "drill", idempotency_key=key)

    async def _cancel(self, procedure: str, _: str) -> ProcedureBody:
        return await self.session.procedures.cancel(procedure)

    async def _uncordon(self, node: str, _: str) -> NodeBody:
        return await self.book.uncordon(node)


@dataclass
class Dropper:
    """The owner of a table who drops it, and undrops it some time later."""

    session: Session
    name: str

    async def run(self, changes: int) -> None:
        for _ in range(changes):
            await self.session.think(THINK_MS)
            before = await self._leaders()
            dropped = await pursued(self.session, self._drop)
            if dropped.error is not None:
                continue
            await self.session.think(DROPPED_MS)
            await pursued(self.session, self._undrop)
            after = await self._leaders()
            moved = [region for region, node in after.items() if before.get(region, node) != node]
            self.session.network.weather.sometimes[MOVED_DROPPED] += len(moved)

    async def _leaders(self) -> dict[str, str | None]:
        try:
            route = await self.session.tables.route(self.name)
        except MetaError:
            return {}
        return {region.region_id: region.leader for region in route.regions}

    async def _drop(self, key: str) -> bool:
        return await self.session.tables.drop(self.name, idempotency_key=key)

    async def _undrop(self, key: str) -> TableBody:
        return await self.session.tables.undrop(self.name, idempotency_key=key)


class Drained(Plot):
    drawn_faults = DRAIN_FAULTS

    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self.names.append(DROPPED)
        for node in world.nodes:
            node.has_copies = True
        routes = CopyGhost(world.weather.sometimes, world.wrong)
        world.ghost.listeners.append(routes.written)

    async def _shaped(self) -> bool:
        """No table has an index: rows alone are moved."""
        return True

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, length = self.world, self.length
        actors: list[tuple[str, Coroutine[Any, Any, None]]] = []
        for number in range(length.writers):
            name = f"writer-{number}"
            writer = Writer(world.session(name), number, self.names)
            actors.append((name, writer.run(length.statements)))
        drainer = Drainer(world.session("drainer"), self.known[0])
        actors.append(("drainer", drainer.run(length.owned)))
        dropper = Dropper(world.session("dropper"), DROPPED)
        actors.append(("dropper", dropper.run(DROPS)))
        actors.append(("reader", self._read(world.session("reader"))))
        return actors

    async def _judge(self) -> None:
        if not await self._over("procedures", self._no_procedure):
            for record in self._records():
                self.world.wrong(f"{record.kind} is {record.phase} at {record.step}")
            return
        await self._over("one copy of each region", self._have_one_copy, SETTLE_MS_MAX)
        await super()._judge()

    async def _judge_shaped(self) -> None:
        """There is no such table."""

    def _have_one_copy(self) -> bool:
        return not any(region.copies for region in regions_of(self.world.kv))
