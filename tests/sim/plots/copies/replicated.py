"""Tables with copies under writers and readers: leaders change, sets shrink and grow, disks are
lost, and nodes are cut off in one direction. At the end every copy of a set has led once, with
every acknowledged row (G51 to G55)."""

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dataplane.region.place import RegionLimits
from keys.model.tables import RegionRoute, RegionState
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.procedures import FailoverRequest
from tests.sim.checks.copy_invariants import CopyGhost
from tests.sim.checks.minimum_invariants import MinimumGhost
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Known, Owner
from tests.sim.clients.writers import Writer, read_all
from tests.sim.cluster.world import World
from tests.sim.length import SHORT, Life
from tests.sim.plots.copies.copy_faults import COPY_FAULTS, regions_of
from tests.sim.scenario import SETTLE_MS_MAX, Plot

NEVER_FLUSHED = RegionLimits(memtable_bytes=64 << 20, flush_age_ms=1 << 40)
"""A learner is brought up from the log of its leader alone."""
REPLICATED = replace(
    SHORT,
    name="replicated",
    nodes=4,
    writers=2,
    users=0,
    scans=0,
    statements=30,
    changes=0,
    owned=4,
    reads=6,
    faults_min=3,
    faults_max=6,
    faults_ms=25_000,
    limits=NEVER_FLUSHED,
)
COPIES = 3
REGIONS = 2
THINK_MS = 6_000
WRITABLE_MS_MAX = 60_000
REPORTED_MS = 5_000
"""The time after which nodes have reported copies that were made anew as theirs."""
WHOLE = "a set that was whole again at the end"
LED_AT_THE_END = "a copy that has led at the end"
MOVED = "a leader that an operator has moved"
EMPTIED = "a table with copies that was truncated"
WIDENED = "a table with copies that got a column"


@dataclass
class Mover:
    """An operator who moves leaders of one table, alters it, and truncates it."""

    owner: Owner
    known: Known
    nodes: tuple[str, ...]

    async def run(self, changes: int) -> None:
        session = self.owner.session
        for _ in range(changes):
            await session.think(THINK_MS)
            drawn = session.random.random()
            if drawn < 0.2:
                await self.owner.truncate(self.known)
                session.count(EMPTIED)
            elif drawn < 0.5:
                await self._widen()
            else:
                await self._move()

    async def _widen(self) -> None:
        """Adds a column, whichever leaders and copies are lost meanwhile."""
        columns = self.known.columns
        await self.owner.alter(self.known, share_of_options=0.0)
        if self.known.columns > columns:
            self.owner.session.count(WIDENED)

    async def _move(self) -> None:
        session = self.owner.session
        try:
            route = await session.tables.route(self.known.name)
        except MetaError:
            return
        region = session.random.choice(list(route.regions))
        node, force = session.random.choice(self.nodes), self.owner.has_force
        if await promoted(session, region.region_id, node, force=force):
            session.count(MOVED)


async def promoted(session: Session, region_id: str, node: str, *, force: bool) -> bool:
    """Asks that *node* leads a region next, until the answer is final; returns whether that was
    taken. *force*: also while its leader lives."""
    request = FailoverRequest(region_ids=(region_id,), reason="drill", targets=(node,), force=force)
    end = await pursued(session, lambda key: session.failovers.start(request, idempotency_key=key))
    return end.error is None


class Replicated(Plot):
    drawn_faults = COPY_FAULTS
    regions = REGIONS

    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self._led: dict[str, list[str]] = {}
        """Region -> the leaders of the end, in order."""
        for node in world.nodes:
            node.has_copies = True
        routes = CopyGhost(world.weather.sometimes, world.wrong)
        self.minimum = MinimumGhost(world.loop.time, world.wrong)
        world.ghost.listeners += [routes.written, self.minimum.written]

    # ---- before

    async def _shaped(self) -> bool:
        """No table changes all of its shape."""
        return True

    def _owner(self, name: str) -> Owner:
        owner = super()._owner(name)
        owner.replicas = COPIES
        return owner

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, length = self.world, self.length
        actors: list[tuple[str, Coroutine[Any, Any, None]]] = []
        for number in range(length.writers):
            name = f"writer-{number}"
            writer = Writer(world.session(name), number, self.names)
            actors.append((name, writer.run(length.statements)))
        actors += self._operators()
        for number in range(2):
            name = f"reader-{number}"
            actors.append((name, self._read(world.session(name))))
        return actors

    def _operators(self) -> "Iterator[tuple[str, Coroutine[Any, Any, None]]]":
        """Yields clients that change what others write and read."""
        (known,) = self.known
        mover = Mover(self.owners[0], known, tuple(node.name for node in self.world.nodes))
        yield "mover", mover.run(self.length.owned)

    # ---- after

    async def _judge(self) -> None:
        """Every set is whole again, and each copy leads once with every row."""
        world = self.world
        if not await self._over("procedures", self._no_procedure):
            return
        await self._over("sets", self._are_whole, SETTLE_MS_MAX)
        world.weather.sometimes[WHOLE] += self._are_whole()
        session = world.session("judge")
        await self._judge_minimum(session)
        for _ in range(COPIES - 1):
            await world.sleep_ms(REPORTED_MS)
            await self._read_as_promised(session)
            for region in list(self._regions()):
                await self._lead_next(session, region)
            await self._over("sets, again", self._are_whole, SETTLE_MS_MAX)
        await super()._judge()

    async def _judge_shaped(self) -> None:
        """There is no such table."""

    async def _read_as_promised(self, session: Session) -> None:
        for known in self.known:
            await read_all(session, session.rows(known.name), must=True)

    async def _judge_minimum(self, session: Session) -> None:
        for known in self.known:
            rows = session.oracle.rows(known.table_id)
            router = (await session.rows(known.name).binding.get()).layout.router
            numbers = {key: router.number([key]) for key in rows.keys}
            self.minimum.judge(known.table_id, rows, numbers)

    async def _lead_next(self, session: Session, region: RegionRoute) -> None:
        """The copy that has not led for longest leads, and then all know it."""
        self._led.setdefault(region.region_id, []).append(region.leader)
        before = self._led[region.region_id]
        others = [node for node in region.in_sync if node not in before]
        if not others:
            return
        node = session.random.choice(others)
        await promoted(session, region.region_id, node, force=True)

        def leads() -> bool:
            return any(
                one.region_id == region.region_id and one.leader == node for one in self._regions()
            )

        if await self._over(f"{node} leads {region.region_id}", leads):
            self.world.weather.sometimes[LED_AT_THE_END] += 1

    def _regions(self) -> Iterator[RegionRoute]:
        return regions_of(self.world.kv)

    def _are_whole(self) -> bool:
        return all(
            len(region.in_sync) == COPIES and region.state is RegionState.OPEN
            for region in self._regions()
        )
