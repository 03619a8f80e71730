"""Tables in placements with node filters and two engines, on nodes with labels: filters and labels
change beside failovers, drains and truncates, while nodes and leaders die."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from metasrv.sdk.control.operations import NodeBook
from metasrv.sdk.control.placements import Placements
from metasrv_base.engines import LSM, MEMORY
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.cluster import NodeBody
from metasrv_base.wire.api.placing.placements import PlacementBody
from metasrv_base.wire.api.procedures import FailoverRequest
from metasrv_base.wire.api.tables import TableBody
from tests.sim.checks.placement_invariants import FilterGhost
from tests.sim.clients.client import Session, pursued
from tests.sim.clients.ddl import spec
from tests.sim.cluster.world import World
from tests.sim.length import SHORT, Life
from tests.sim.scenario import Plot

PLACED = replace(
    SHORT, name="placed", nodes=5, users=1, scans=0, changes=0, faults_max=4, faults_ms=20_000
)
PLACEMENTS = ("p0", "p1", "p2")
PROFILES = (
    {"name": "files", "engine": LSM},
    {"name": "quick", "engine": MEMORY, "options": {"region_bytes": 1 << 20}},
)
DISKS = ("ssd", "hdd")
THINK_MS = 2_000
CHANGES = 22
AGAIN_MS = 2_000
FORCED = 0.7
"""Share of the failovers that also move a region from a node which lives, in a life with such."""
DRAINED = "a node that was drained beside node filters"
REFUSED = "a drain that node filters refused"
ALTERED = "a filter that was altered"


@dataclass
class Placer:
    """One operator. Everything is asked for until the answer is final, and a drain or a failover
    goes on by itself."""

    session: Session
    nodes: tuple[str, ...]
    has_force: bool = False
    """Whether failovers may be forced: then two nodes may hold one lease."""
    tables: dict[str, int] = field(default_factory=dict)
    """Tables that were made, by name."""
    in_memory: list[str] = field(default_factory=list)
    """Names of tables of the engine `memory`."""
    changes: int = 0

    def __post_init__(self) -> None:
        self.placements = Placements(self.session.service)
        self.book = NodeBook(self.session.service)

    async def prepare(self) -> None:
        """Labels every node, and makes the placements: each leaves some node out."""
        for number, node in enumerate(self.nodes):
            await self._label(node, DISKS[number % 2])
        for name in PLACEMENTS:
            body = {"name": name, "storage_profiles": PROFILES, "node_filter": self._filter()}
            await self._asked(partial(self._create_placement, body))
            await self.create()

    async def run(self, changes: int) -> None:
        draws = [self.create, self.alter, self.alter, self.label, self.fail_over, self.fail_over]
        draws += [self.drain, self.drain, self.truncate]
        while self.changes < changes:
            await self.session.think(THINK_MS)
            self.changes += 1
            await self.session.random.choice(draws)()

    async def create(self) -> None:
        random = self.session.random
        name = f"placed{len(self.tables)}_{self.changes}"
        body = spec(name, 2) | {"placement": random.choice(PLACEMENTS)}
        body["storage_profile"] = random.choice(["files", "files", "quick"])
        tables = self.session.tables
        made = await self._asked(lambda key: tables.create(body, idempotency_key=key))
        if made is not None:
            self.tables[name] = made.id
            self.in_memory += [name] if body["storage_profile"] == "quick" else []

    async def alter(self) -> None:
        name = self.session.random.choice(PLACEMENTS)
        altered = await self._asked(partial(self._alter_filter, name, self._filter()))
        self.session.network.weather.sometimes[ALTERED] += altered is not None

    async def label(self) -> None:
        random = self.session.random
        await self._label(random.choice(self.nodes), random.choice([*DISKS, None]))

    async def fail_over(self) -> None:
        """One region of a table, to any node or to two that are named."""
        session, random = self.session, self.session.random
        if not self.tables:
            return
        try:
            route = await session.tables.route(random.choice(sorted(self.tables)))
        except MetaError:
            return
        region = random.choice(list(route.regions))
        targets = tuple(random.sample(self.nodes, 2)) if random.random() < 0.5 else ()
        force = self.has_force and random.random() < FORCED
        request = FailoverRequest(
            region_ids=(region.region_id,), reason="drill", targets=targets, force=force
        )
        await self._asked(lambda key: session.failovers.start(request, idempotency_key=key))

    async def drain(self) -> None:
        """Some node; whichever was drained before takes regions again."""
        random = self.session.random
        await self.uncordon()
        node = random.choice(self.nodes)
        targets = random.sample([one for one in self.nodes if one != node], 2)
        said = targets if random.random() < 0.3 else ()
        drained = await self._asked(
            lambda key: self.book.drain(node, "drill", said, idempotency_key=key)
        )
        self.session.count(REFUSED if drained is None else DRAINED)

    async def truncate(self) -> None:
        """Without a wait: where no node may take a region it ends when a filter is altered."""
        if not self.tables:
            return
        name = self.session.random.choice(sorted(self.tables))
        path = f"/v1/catalogs/main/schemas/public/tables/{name}/truncate"
        headers = {"idempotency-key": self.session.key(), "prefer": "wait=0"}
        try:
            await self.session.http.request("POST", path, headers=headers, deadline_ms=3_000)
        except MetaError as error:
            self.session.count(f"refused: {error.code}")

    async def begin_anew(self) -> None:
        """Truncates every table whose rows are in memory: regions of nodes that died are lost, and
        nothing else empties them."""
        for name in self.in_memory:
            await self._asked(partial(self._truncate, name))

    async def widen(self) -> None:
        """Every node may take regions of every placement."""
        await self.uncordon()
        for name in PLACEMENTS:
            await self._asked(partial(self._alter_filter, name, {}))

    async def uncordon(self) -> None:
        for node in self.nodes:
            await self._asked(partial(self._uncordon, node))

    async def _label(self, node: str, disk: str | None) -> None:
        await self._asked(lambda key: self.book.label(node, {"disk": disk}))

    async def _truncate(self, name: str, key: str) -> TableBody:
        return await self.session.tables.truncate(name, idempotency_key=key)

    async def _uncordon(self, node: str, _: str) -> NodeBody:
        return await self.book.uncordon(node)

    async def _create_placement(self, body: dict[str, Any], key: str) -> PlacementBody:
        return await self.placements.create(body, idempotency_key=key)

    async def _alter_filter(
        self, name: str, wanted: dict[str, Any], key: str
    ) -> PlacementBody | None:
        return await self.placements.alter(name, {"node_filter": wanted}, idempotency_key=key)

    def _filter(self) -> dict[str, Any]:
        """By a label, by zones, or by both; a quarter of them excludes nobody."""
        random, drawn = self.session.random, self.session.random.random()
        zones = [f"zone-{node}" for node in random.sample(self.nodes, 3)]
        disk = random.choice(DISKS)
        label: dict[str, Any] = {"label": "disk"}
        label |= {"equals": disk} if drawn < 0.4 else {"in": [disk]}
        if drawn < 0.25:
            return {}
        if drawn < 0.6:
            return {"labels": [label]}
        return {"zones": zones} if drawn < 0.85 else {"zones": zones, "labels": [label]}

    async def _asked(self, ask: Callable[[str], Awaitable[Any]]) -> Any:
        """The answer, or None where it was refused."""
        return (await pursued(self.session, ask)).value


class Placed(Plot):
    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        nodes = tuple(node.name for node in world.nodes)
        self.placer = Placer(world.session("placer"), nodes, world.has_force)
        for node in world.nodes:
            node.has_copies = True  # a drain gives a region two for a while
        for node in world.nodes[::2]:
            node.engines = (LSM, MEMORY)
        ghost = FilterGhost(
            world.kv, world.servers, world.weather.sometimes, world.wrong, world.loop.time
        )
        world.ghost.listeners.append(ghost.written)

    async def _prepared(self) -> bool:
        if not await super()._prepared():
            return False
        await self.placer.prepare()
        return True

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        """The placer first: peace is made when it and the writer have done their work."""
        return [("placer", self.placer.run(CHANGES)), *super()._actors()]

    def _make_peace(self) -> None:
        super()._make_peace()
        self.world.loop.spawn("world", self._widen())

    async def _judge(self) -> None:
        await self.placer.begin_anew()
        await super()._judge()

    async def _widen(self) -> None:
        """Until the end: what was asked for last may be done after the first time."""
        operator = Placer(self.world.session("widener"), self.placer.nodes)
        while True:
            await operator.widen()
            await self.world.sleep_ms(AGAIN_MS)
