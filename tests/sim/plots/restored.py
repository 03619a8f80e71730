"""A cluster is backed up beside changes and writers, goes on, and is lost; another one is restored
from the backup, and adopts the nodes (docs/protocols.md P8)."""

from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from keys.model.cluster import ClusterKey
from keys.model.tables import RegionState
from keys.store.memory import MemoryKv
from metasrv.check.collect import check
from metasrv.restore.comparison import BackupComparison, compared
from metasrv.restore.found_regions import FoundRegions
from metasrv.restore.restore import RestoreDeps, restore
from metasrv.sdk.control.operations import NodeBook
from metasrv_base.errors import Conflict, MetaError, NotFound
from metasrv_base.wire.api.adoption import AdoptionBody
from tests.fakes.chance import SeededIds
from tests.sim.checks.cluster_inspector import SimEyes
from tests.sim.checks.follow_invariants import FollowGhost
from tests.sim.checks.invariants import KnownGhost, StoreGhost
from tests.sim.checks.restore_invariants import LastKnown, RestoreGhost, Tables
from tests.sim.checks.schema_invariants import ShapeGhost
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Known, Owner
from tests.sim.clients.writers import read_all
from tests.sim.cluster.faults import Fault, leader_dies, leader_dies_writing, node_dies
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.nodes import Datanode
from tests.sim.cluster.servers import Metasrv, Outside
from tests.sim.cluster.store import FaultyStore
from tests.sim.cluster.world import DRIFT, FRONTENDS, World
from tests.sim.length import SHORT, Life
from tests.sim.loop import WORLD
from tests.sim.plots.restore_steps import (
    AGAIN_MS,
    NoAgreement,
    Unfenced,
    backed_up,
    cluster_of,
    give_numbers,
    inventories_of,
    order_of_lost,
)
from tests.sim.scenario import QUIET_MS, Plot

RESTORED = replace(
    SHORT, name="restored", users=0, scans=0, statements=60, changes=6, owned=6, faults_min=1
)
TABLES = ("t0", "t1")
STORM = 0.3
BEFORE_MS = (3_000, 10_000)
AFTER_MS = (1_000, 9_000)
ADOPTED_MS_MAX = 120_000
RUNS_MAX = 3
"""Runs of a restore, the last of which nobody kills."""
KILLED_MS = (1, 3, 8, 15, 30)
FAULTS: tuple[Fault, ...] = (leader_dies, leader_dies_writing, node_dies)
FIRST_SERVER = 11
SERVERS = 2
MOVED = "a region that moved behind a backup"
GONE = "a region that was purged behind a backup"
KILLED = "a restore that was killed and begun again"
RESUMED = "a procedure that a restore had parked"
ENDED = "a lost table that was dropped"
EMPTIED = "a lost table that was truncated"
REFUSED = "an order of the lost cluster that an adopted node refused"
CLEAN = "a restored cluster that is clean"


class Restored(Plot):
    removes_orphans = False  # the backup, seconds old, names folders that would be gone

    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self.names = list(TABLES)
        self.old = LastKnown()
        self.old_kv = world.kv
        world.ghost.listeners.append(self.old.written)

    async def play(self) -> None:
        world = self.world
        for process in self._processes():
            process.start()
        watching = world.loop.spawn(WORLD, self._watch())
        if await self._prepared():
            await self._live()
            if await self._restore() and await self._adopt():
                await self._judge()
        watching.cancel()

    # ---- the cluster that is lost

    async def _live(self) -> None:
        """Clients, faults, a backup, changes that it does not know, and the end."""
        world, random = self.world, self.world.random
        owner = self._owner("purger")
        purged = await owner.create("gone", 2)
        actors = self._actors()
        for name, actor in actors:
            world.loop.spawn(name, actor)
        world.weather.storm = world.weather.store_storm = STORM
        world.weather.is_tried = True
        trouble = world.loop.spawn(WORLD, self._trouble())
        await world.sleep_ms(random.uniform(*BEFORE_MS))
        self.backup = await backed_up(world.session("archivist"))
        self.cluster = cluster_of(self.backup)
        await self._go_on(owner, purged)
        await world.sleep_ms(random.uniform(*AFTER_MS))
        await trouble
        world.weather.clear()
        self._end(actors)

    def _end(self, actors: "list[tuple[str, Coroutine[Any, Any, None]]]") -> None:
        world = self.world
        for name, _ in actors:
            world.loop.kill(name)
            world.network.died(name)
        for process in self._processes():
            process.kill()
        world.kv.tick()
        world.ghost.look()

    async def _trouble(self) -> None:
        for _ in range(self.world.random.randint(1, self.length.faults_max)):
            await self.world.sleep_ms(self.world.random.uniform(500, 4_000))
            fault = self.world.random.choice(FAULTS)
            self.faults.append(fault.__name__)
            await self._happens(fault)

    async def _go_on(self, owner: Owner, purged: Known | None) -> None:
        """One table is purged, another made, one truncated, and numbers of each kind given out."""
        session = owner.session
        if purged is not None:
            await owner.drop(purged)
            await pursued(session, partial(self._purge, session, purged.table_id))
        late = await owner.create("late", 1)
        for known in [*self.known, *([] if late is None else [late])]:
            await give_numbers(session, known.table_id, "old")
        await owner.truncate(self.known[1])

    async def _purge(self, session: Session, table_id: int, key: str) -> None:
        await session.tables.purge("drill", table_id=table_id, idempotency_key=key)

    # ---- the cluster that is restored

    async def _restore(self) -> bool:
        """The steps of docs/operate/backups.md: the nodes wait, their disks are read, the backup is
        compared with them, and written under another prefix. Whether there is a cluster."""
        world = self.world
        urls = tuple(f"http://ms-{FIRST_SERVER + n}:4000" for n in range(SERVERS))
        for node in world.nodes:
            node.metasrvs = urls
            node.start()
        held = await inventories_of(world.session("planner"), world.nodes, self.cluster)
        kv, tables = MemoryKv(world.clock), Tables.of_backup(self.backup)
        self.ghost = RestoreGhost(tables, self.old, held, self.old_kv, world.wrong)
        told = compared(lambda: [self.backup], held)
        self.ghost.judge_plan(told)
        self._note(told)
        is_written = await self._write(kv, held if world.random.random() < 0.7 else None)
        if is_written:
            self._begin(kv, urls)
        return is_written

    def _note(self, told: BackupComparison) -> None:
        sometimes = self.world.weather.sometimes
        self.listed = {one.region_id for one in told.findings}
        sometimes[MOVED] += told.fates["moved"]
        sometimes[GONE] += told.fates["dropped"] + told.fates["missing"]

    async def _write(self, kv: MemoryKv, given: FoundRegions | None) -> bool:
        """A run may be killed anywhere; the next one takes over."""
        world, random = self.world, self.world.random
        for run in range(1, RUNS_MAX + 1):
            name = f"restorer-{run}"
            task = world.loop.spawn(name, self._run(kv, run, given))
            if run < RUNS_MAX and random.random() < 0.6:
                await world.sleep_ms(random.choice(KILLED_MS))
                world.loop.kill(name)
            else:
                await self._over("restore", task.done)
            if _has_cluster(kv):
                return True
            world.weather.sometimes[KILLED] += 1
        world.wrong("restore: it did not end")
        return False

    async def _run(self, kv: MemoryKv, run: int, given: FoundRegions | None) -> None:
        world, name = self.world, f"restorer-{run}"
        store = FaultyStore(world.loop, kv, world.weather, name, Unfenced())
        deps = RestoreDeps(store, world.clock, SeededIds(world.clock, run))
        try:
            await restore(deps, lambda: [self.backup], inventories=given, again=run > 1)
        except Conflict as error:  # the late copy of another run had ended it
            world.loop.trace(name, error.code)
            if not _has_cluster(kv):
                world.wrong(f"restore: run {run} was refused, and there is no cluster: {error}")

    def _begin(self, kv: MemoryKv, urls: tuple[str, ...]) -> None:
        """Servers and frontends of the new cluster take the place of those that are lost."""
        world = self.world
        sometimes, wrong, loop = world.weather.sometimes, world.wrong, world.loop
        world.kv, world.urls = kv, urls
        world.ghost = StoreGhost(loop, kv, sometimes, wrong, NoAgreement())
        world.ghost.look()
        self.ghost.begun(kv)
        world.ghost.listeners.append(self.ghost.written)
        followed = FollowGhost(world.ghost, sometimes, wrong)
        outside = Outside(
            loop, kv, world.network, world.disks, world.ghost, handler=followed.handler
        )
        world.servers = [
            Metasrv(FIRST_SERVER + n, outside, world._clock(DRIFT)) for n in range(SERVERS)
        ]
        world.known = KnownGhost(kv, wrong)
        world.shapes = ShapeGhost(kv, sometimes, wrong, world.oracle.leases_hold)
        world.frontends = [
            Frontend(FIRST_SERVER + n, loop, world.network, world._clock(DRIFT), urls)
            for n in range(FRONTENDS)
        ]
        for server in world.servers:
            server.start()

    async def _adopt(self) -> bool:
        """Node by node, while leaders and nodes die."""
        world = self.world
        session = world.session("adopter")
        nodes = list(world.nodes)
        world.random.shuffle(nodes)
        world.weather.storm = world.weather.store_storm = STORM / 2
        trouble = world.loop.spawn(WORLD, self._trouble())
        adopting = world.loop.spawn("adopter", self._adopt_all(session, nodes))
        is_over = await self._over("adoption", adopting.done, ADOPTED_MS_MAX)
        await trouble
        self._make_peace()
        return is_over

    async def _adopt_all(self, session: Session, nodes: list[Datanode]) -> None:
        book = NodeBook(session.service)
        for number, node in enumerate(nodes, start=1):
            after: int | None = 0
            while after is not None:
                after = (await self._adopted(session, book, node, after)).next
            self.ghost.judge_places(is_over=number == len(nodes))

    async def _adopted(
        self, session: Session, book: NodeBook, node: Datanode, after: int
    ) -> AdoptionBody:
        """However often it takes."""
        while True:
            try:
                return await book.adopt(node.name, after=after)
            except MetaError as error:
                session.count(f"an adoption to be repeated: {error.code}")
                await session.clock.sleep_ms(AGAIN_MS)

    # ---- after

    async def _judge(self) -> None:
        world = self.world
        session = world.session("judge")
        await self._refuse()
        await self._resume(session)
        await self._end_lost(session)
        if not await self._over("procedures", self._no_procedure):
            for record in self._records():
                world.wrong(f"{record.kind} is {record.phase} at {record.step}: {record.error}")
            return
        await world.sleep_ms(QUIET_MS)
        for known in self.known:
            await self._read_again(session, known)
        made = await self._owner("newcomer").create("newest", 2)
        for known in [*self.known, *([] if made is None else [made])]:
            await give_numbers(session, known.table_id, "new")
        self.ghost.judge_ids(world.kv)
        await self._over("procedures, again", self._no_procedure)
        await world.sleep_ms(QUIET_MS)
        await self._settle()
        await self._check()

    async def _settle(self) -> None:
        """Waits for what nobody has asked for, before all is checked."""

    async def _refuse(self) -> None:
        """No node takes an order of the lost cluster, also after its process has begun anew."""
        world = self.world
        for node in world.nodes:
            node.kill()
            node.start()
        await self._over("nodes", lambda: all(node.service is not None for node in world.nodes))
        for _, region in self.ghost.backup.regions():
            node = next(one for one in world.nodes if one.name == region.leader)
            said = await order_of_lost(world.network, node, self.cluster, region.region_id)
            if said != "wrong-cluster":
                world.wrong(f"restore: {node.name} answers the lost cluster: {said}")
            world.weather.sometimes[REFUSED] += said == "wrong-cluster"

    async def _resume(self, session: Session) -> None:
        """Lets go on whatever was parked, and undoes whatever was being undone."""
        for body in await session.procedures.list(state="paused"):
            session.count(RESUMED)
            await pursued(session, partial(self._control, session, body.id, "resume"))
        for poison in await session.procedures.poisons():
            session.count(RESUMED)
            await pursued(session, partial(self._control, session, poison.procedure_id, "retry"))

    async def _control(self, session: Session, procedure: str, action: str, _: str) -> object:
        return await session.procedures.control(procedure, action)

    async def _end_lost(self, session: Session) -> None:
        """A region that stays lost was listed before anything was written, and is of a table that
        was purged. An operator drops the table, or truncates it: the nodes make its regions again,
        empty, though the lost cluster had them drop these."""
        lost = set[int]()
        for table_id, region in Tables.of_store(self.world.kv).regions():
            if region.state is RegionState.LOST:
                lost.add(table_id)
                if region.region_id not in self.listed or table_id not in self.old.purged:
                    self.world.wrong(f"restore: {region.region_id} of {table_id} is lost")
        for table_id in sorted(lost):
            name = (await session.tables.get_by_id(table_id)).name
            what, act = self.world.random.choice(((ENDED, self._drop), (EMPTIED, self._truncate)))
            end = await pursued(session, partial(act, session, name))
            session.count(what)
            if end.error is not None:
                self.world.wrong(f"restore: {name} stays lost: {end.error}")

    async def _drop(self, session: Session, name: str, key: str) -> object:
        return await session.tables.drop(name, idempotency_key=key)

    async def _truncate(self, session: Session, name: str, key: str) -> object:
        return await session.tables.truncate(name, idempotency_key=key)

    async def _read_again(self, session: Session, known: Known) -> None:
        try:
            body = await session.tables.get_by_id(known.table_id)
        except NotFound:
            session.count("a table that was dropped when it was backed up")
            return
        await read_all(session, session.rows(body.name), must=True)

    async def _check(self) -> None:
        world = self.world
        eyes = SimEyes(world.loop, world.network, world.disks, world.urls)
        checked = await check(world.kv, eyes, world.clock, deep=True)
        wrong = [one.line for one in checked.violations if one.severity == "violation"]
        for line in wrong:
            world.wrong(f"check: {line}")
        world.weather.sometimes[CLEAN] += not wrong


def _has_cluster(kv: MemoryKv) -> bool:
    return kv._store.get(bytes(ClusterKey())) is not None
