"""Tables with one to three copies, whose copies are moved, added and removed beside planned
switches, alters and failovers, while nodes die and disks are lost. Then, within a bounded time,
every procedure ends and every region has as many copies as its table is to have, all in sync."""

from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keys.model.tables import RegionRoute, RegionState, TableInfo, TableInfoKey
from keys.value import decode
from metasrv.sdk.control.operations import Regions
from metasrv.sdk.control.tables import Indexes
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.tables import RegionRouteBody
from tests.sim.clients.client import pursued
from tests.sim.clients.ddl import Known, Owner
from tests.sim.cluster.world import World
from tests.sim.length import SMALL, Life
from tests.sim.plots.copies.copy_faults import every_region_of
from tests.sim.plots.copies.replicated import REPLICATED, Replicated, promoted
from tests.sim.scenario import SETTLE_MS_MAX, Plot

MOVED_COPIES = replace(
    REPLICATED,
    name="moved-copies",
    nodes=5,
    statements=40,
    owned=12,
    faults_min=4,
    faults_max=8,
    faults_ms=40_000,
    limits=SMALL,
)
REPLICAS: Mapping[str, int] = {"t0": 3, "t1": 2, "t2": 1}
"""Copies of each table when it is made."""
THINK_MS = 6_000
COPIES_MOVED = "a copy that was moved"
COPIES_KEPT = "a copy that was added, and its source kept"
SWITCHED = "a leader that was switched as planned"
NUMBERED = "a table that got another number of copies"
INDEXED = "a table with copies that got an index"
SETTLED = "a region that had all of its copies in sync at the end"


class Maker(Owner):
    """Makes tables with different numbers of copies."""

    async def create(self, name: str, regions: int) -> Known | None:
        self.replicas = REPLICAS[name]
        return await super().create(name, regions)


@dataclass
class CopyOperator:
    """An operator of one table: moves, adds and switches copies, and alters the table beside."""

    owner: Owner
    known: Known
    nodes: tuple[str, ...]
    has_index: bool = False

    def __post_init__(self) -> None:
        self.regions = Regions(self.owner.session.service)
        self.indexes = Indexes(self.owner.session.service)

    async def run(self, changes: int) -> None:
        draws = [self.move, self.move, self.move, self.add, self.switch, self.switch]
        draws += [self.number, self.number, self.alter, self.alter, self.alter, self.fail_over]
        for _ in range(changes):
            await self.owner.session.think(THINK_MS)
            await self.owner.session.random.choice(draws)()

    async def move(self) -> None:
        """The copy on some node, the leader's too, to one that is named or that suits."""
        session = self.owner.session
        region = await self._region()
        if region is None:
            return
        nodes = [] if region.leader is None else [region.leader]
        node = session.random.choice([*nodes, *(copy.node for copy in region.copies)])
        to_node = session.random.choice([None, session.random.choice(self.nodes)])

        async def ask(key: str) -> Any:
            return await self.regions.move_copy(
                region.region_id, node, "drill", to_node, idempotency_key=key
            )

        await self._asked(ask, COPIES_MOVED)

    async def add(self) -> None:
        """One more copy; which of them goes then is the keeper's choice."""
        region = await self._region()
        if region is None:
            return

        async def ask(key: str) -> Any:
            return await self.regions.add_copy(region.region_id, "drill", idempotency_key=key)

        await self._asked(ask, COPIES_KEPT)

    async def switch(self) -> None:
        region = await self._region()
        if region is None:
            return

        async def ask(key: str) -> Any:
            return await self.regions.switch_leader(region.region_id, "drill", idempotency_key=key)

        await self._asked(ask, SWITCHED)

    async def number(self) -> None:
        """Another number of copies, one at times: then the region borrows when it fails over."""
        replicas = self.owner.session.random.choice([1, 2, 3])
        operation = {"op": "set_copies", "replicas": replicas}

        async def ask(key: str) -> Any:
            tables = self.owner.session.tables
            return await tables.alter(self.known.name, [operation], idempotency_key=key)

        await self._asked(ask, NUMBERED)

    async def alter(self) -> None:
        """A column, an index, or no rows any more."""
        random = self.owner.session.random
        drawn = random.random()
        if drawn < 0.4:
            await self._index()
        elif drawn < 0.8:
            await self.owner.alter(self.known, share_of_options=0.2)
        else:
            await self.owner.truncate(self.known)

    async def _index(self) -> None:
        spec, name = {"name": "by_v", "columns": ["v"]}, self.known.name

        async def ask(key: str) -> Any:
            if self.has_index:
                return await self.indexes.drop(name, "by_v", idempotency_key=key)
            return await self.indexes.create(name, spec, idempotency_key=key)

        if await self._asked(ask, INDEXED):
            self.has_index = not self.has_index

    async def fail_over(self) -> None:
        session = self.owner.session
        region = await self._region()
        if region is not None:
            node = session.random.choice(self.nodes)
            await promoted(session, region.region_id, node, force=self.owner.has_force)

    async def _region(self) -> RegionRouteBody | None:
        session = self.owner.session
        try:
            route = await session.tables.route(self.known.name)
        except MetaError:
            return None
        return session.random.choice(list(route.regions))

    async def _asked(self, ask: Any, what: str) -> bool:
        end = await pursued(self.owner.session, ask)
        if end.error is None:
            self.owner.session.count(what)
        return end.error is None


class MovedCopies(Replicated):
    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        self.names = list(REPLICAS)

    def _owner(self, name: str) -> Owner:
        self.owners.append(Maker(self.world.session(name), has_force=self.world.has_force))
        return self.owners[-1]

    def _operators(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        nodes = tuple(node.name for node in self.world.nodes)
        for number, known in enumerate(self.known):
            owner = self._owner(f"operator-{number}")
            owner.known[known.table_id] = self.owners[0].known.pop(known.table_id)
            operator = CopyOperator(owner, known, nodes)
            yield f"operator-{number}", operator.run(self.length.owned)

    async def _judge(self) -> None:
        """All comes to rest within one bound, whatever was begun last."""
        if not await self._over("procedures and copies", self._has_settled, SETTLE_MS_MAX):
            self._tell()
            return
        world = self.world
        world.weather.sometimes[SETTLED] += len(self._every_region())
        session = world.session("judge")
        await self._judge_minimum(session)
        await self._read_as_promised(session)
        for _, region in self._every_region():
            await self._lead_next(session, region)
        await self._over("copies, again", self._has_settled, SETTLE_MS_MAX)
        await Plot._judge(self)

    def _has_settled(self) -> bool:
        return self._no_procedure() and self._are_whole()

    def _tell(self) -> None:
        for record in self._records():
            self.world.wrong(f"{record.kind} is {record.phase} at {record.step}: {record.error}")
        for info, region in self._every_region():
            if not _is_whole(info, region):
                self.world.wrong(f"{region} is to have {info.replicas} copies")

    def _are_whole(self) -> bool:
        return all(_is_whole(info, region) for info, region in self._every_region())

    def _every_region(self) -> "list[tuple[TableInfo, RegionRoute]]":
        infos = {}
        for item in list(self.world.kv._store.scan(*TableInfoKey.under())):
            info = decode(TableInfo, item.value, key=item.key.decode())
            infos[info.table_id] = info
        return [
            (infos[int(region.region_id) >> 32], region)
            for region in every_region_of(self.world.kv)
        ]


def _is_whole(info: TableInfo, region: RegionRoute) -> bool:
    return (
        region.state is RegionState.OPEN
        and not region.borrows
        and len(region.in_sync) == info.replicas == len(region.nodes)
    )
