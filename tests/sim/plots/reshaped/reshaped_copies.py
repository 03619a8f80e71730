"""Tables with two or three copies whose shape changes under users of frontends, while copies are
moved, added and removed, leaders are switched, nodes are drained and die, and disks are lost. Some
reads take rows of a declared age from the copies. Then all comes to rest, and every copy leads with
the rows and the entries of the model."""

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dataplane.region.place import RegionLimits
from keys.model.placing.placements import DEFAULT_PLACEMENT
from keys.model.tables import RegionRoute
from metasrv.sdk.control.placements import Placements
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import Known, Owner
from tests.sim.clients.shaped import Shaped
from tests.sim.clients.users import read_by_indexes, read_whole
from tests.sim.cluster import faults
from tests.sim.cluster.world import World
from tests.sim.length import Life
from tests.sim.plots.copies.copy_faults import (
    COPY_FAULTS,
    node_is_left_with_a_frontend,
    node_takes_no_orders,
    syncs_fail,
)
from tests.sim.plots.copies.drained import Drainer
from tests.sim.plots.copies.moved_copies import MOVED_COPIES, NUMBERED, CopyOperator, MovedCopies
from tests.sim.plots.copies.preferred import zone_of
from tests.sim.plots.copies.replicated import COPIES, Replicated
from tests.sim.plots.reshaped.importing import Importer
from tests.sim.plots.reshaped.lagging import LaggingReader
from tests.sim.plots.reshaped.reshaping import Reshaper
from tests.sim.scenario import SETTLE_MS_MAX, Plot

FLUSHED_SOON = RegionLimits(memtable_bytes=16 << 10, flush_age_ms=5_000)
"""Copies have files of their own, and fetch those of others."""
RESHAPED_COPIES = replace(
    MOVED_COPIES,
    name="reshaped-copies",
    writers=1,
    users=2,
    scans=6,
    statements=60,
    changes=14,
    owned=4,
    faults_min=7,
    faults_max=12,
    faults_ms=36_000,
    limits=FLUSHED_SOON,
)
ROUNDS = 2
"""In each of which every region comes to be led by another copy, where there is one."""
LAGGING_READS = 45
THINK_MS = 5_000
MOVES = 8
IMPORTS = 5
PLACINGS = 3
DRAINS = 2
PLACED_ANEW = "a placement that was altered"
LOWERED = "a table whose minimum was lowered"


class PlacingOperator(CopyOperator):
    """Changes where copies are, and how many; the shape is another client's."""

    async def run(self, changes: int) -> None:
        draws = [self.move, self.move, self.move, self.add, self.switch, self.switch]
        draws += [self.number, self.minimum, self.fail_over]
        for _ in range(changes):
            await self.owner.session.think(THINK_MS)
            await self.owner.session.random.choice(draws)()

    async def number(self) -> None:
        """Another number of copies, or that of the placement."""
        replicas = self.owner.session.random.choice([2, 3, "default"])
        operation = {"op": "set_copies", "replicas": replicas}

        async def ask(key: str) -> Any:
            tables = self.owner.session.tables
            return await tables.alter(self.known.name, [operation], idempotency_key=key)

        await self._asked(ask, NUMBERED)

    async def minimum(self) -> None:
        """One copy in sync is enough for a while, or as many as before."""
        wanted = self.owner.session.random.choice([1, "default", "default"])
        operation = {"op": "set_copies", "min_in_sync": wanted, "reason": "drill"}

        async def ask(key: str) -> Any:
            tables = self.owner.session.tables
            return await tables.alter(self.known.name, [operation], idempotency_key=key)

        await self._asked(ask, LOWERED)


@dataclass
class PlacementOperator:
    """Alters the placement whose numbers some tables follow, whatever is on its way."""

    session: Session
    nodes: tuple[str, ...]

    async def run(self, changes: int) -> None:
        for _ in range(changes):
            await self.session.think(2 * THINK_MS)
            await self._alter(self._patch())
        await self._alter({"preferred_zones": []})

    def _patch(self) -> dict[str, Any]:
        random = self.session.random
        if random.random() < 0.4:
            return {"preferred_zones": [zone_of(random.choice(self.nodes))]}
        replicas = random.choice([2, 3, 4])
        return {"replicas": replicas, "min_in_sync": random.choice([None, 1, replicas - 1])}

    async def _alter(self, patch: dict[str, Any]) -> None:
        placements = Placements(self.session.service)

        async def ask(key: str) -> Any:
            return await placements.alter(DEFAULT_PLACEMENT, patch, idempotency_key=key)

        end = await pursued(self.session, ask)
        if end.error is None:
            self.session.count(PLACED_ANEW)


class ReshapedCopies(MovedCopies):
    drawn_faults = (
        *COPY_FAULTS,
        *(faults.frontend_dies, faults.frontend_stands_still, faults.frontend_stands_still),
        *(syncs_fail, syncs_fail, syncs_fail),
        *(node_takes_no_orders, node_takes_no_orders, node_takes_no_orders),
        *(node_is_left_with_a_frontend, node_is_left_with_a_frontend),
        *(node_is_left_with_a_frontend, node_is_left_with_a_frontend),
        *(faults.store_is_full, faults.store_forgets, faults.server_without_store),
    )

    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self.names = ["t0"]
        self.shaped_replicas = Random(f"reshaped {life.seed}").choice([2, 3, 3])
        self.shaped = Known("shaped")

    def _owner(self, name: str) -> Owner:
        return Replicated._owner(self, name)

    async def _shaped(self) -> bool:
        return await Plot._shaped(self)

    def _alterer(self, session: Session, shaped: Shaped) -> Reshaper:
        self.shaped.table_id = shaped.table_id
        return Reshaper(session, shaped, known=self.shaped)

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, (alterer,) = self.world, self.alterers
        actors = Plot._actors(self)
        self.forgetters[0].replicas = COPIES  # the disk of a single copy may be lost
        nodes = tuple(node.name for node in world.nodes)
        for known in (self.shaped, *self.known):
            name = f"operator-{known.name}"
            owner = Owner(world.session(name), has_force=world.has_force)
            actors.append((name, PlacingOperator(owner, known, nodes).run(MOVES)))
        placing = PlacementOperator(world.session("placement"), nodes)
        actors.append(("placement", placing.run(PLACINGS)))
        drainer = Drainer(world.session("drainer"), self.shaped)
        actors.append(("drainer", drainer.run(DRAINS)))
        for known in self.known:
            importer = Importer(world.session("importer"), known, world.disks, self.length.writers)
            actors.append(("importer", importer.run(IMPORTS)))
        for number in range(2):
            line = self._line(f"lagging-{number}")
            reader = LaggingReader(line, alterer.table, self.length.users)
            actors.append((line.session.name, reader.run(LAGGING_READS)))
        return actors

    async def _judge(self) -> None:
        if not await self._over("procedures and copies", self._has_settled, SETTLE_MS_MAX):
            self._tell()
            return
        session = self.world.session("judge")
        await self._judge_minimum(session)
        for _ in range(ROUNDS):
            await self._read_as_promised(session)
            for _, region in self._every_region():
                await self._lead_next(session, region)
            if not await self._over("copies, again", self._has_settled, SETTLE_MS_MAX):
                self._tell()
        await Plot._judge(self)

    async def _read_as_promised(self, session: Session) -> None:
        await super()._read_as_promised(session)
        (alterer,) = self.alterers
        await read_whole(self._line("judge-shaped"), alterer.table, must=True)
        await read_by_indexes(self._line("judge-indexes"), alterer.table)

    async def _lead_next(self, session: Session, region: RegionRoute) -> None:
        """Regions of the tables that are written to."""
        table_id = int(region.region_id) >> 32
        if table_id in (self.shaped.table_id, *(known.table_id for known in self.known)):
            await super()._lead_next(session, region)

    async def _judge_shaped(self) -> None:
        await Plot._judge_shaped(self)
