"""Nodes die within a minute of each other, with all that they lead: a second one while the first is
failed over, perhaps the one that took over from it; a third; and the leader in the middle of it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from keys.model.cluster import DATANODE, RemovedNodeKey
from keys.model.records import ProcedureKey
from keys.model.tables import RegionRoute, TableRoute, TableRouteKey
from keys.value import decode
from metasrv_base.errors import MetaError
from tests.sim.clients.index_scans import Scanner
from tests.sim.clients.users import User
from tests.sim.cluster.nodes import Datanode
from tests.sim.length import SHORT
from tests.sim.scenario import Plot

CALM_MS = 4_000
APART_MS = (500, 40_000)
"""Between two deaths."""
FAILOVER_MS_MAX = 40_000
"""In which a node is missed, and its regions are on their way."""
SERVED_MS_MAX = 150_000
"""In which every region is led by a node that lives, an election included."""
STORM = 0.3
PAUSE_MS = 1_500
DOWN_MS = 12_000
GIVEN_UP_S = 60
TWO_DIED = "a second node that died within a minute"
THREE_DIED = "a third node that died while the others were failed over"
IN_ITS_TURN = "a node that died when it had just taken over"
GIVEN_UP = "a dead node that was decommissioned as lost"
LEADER_CHANGED = "a leader that died while nodes were failed over"

OUTAGE = replace(SHORT, name="outage", nodes=6, changes=2, owned=2)


class Outage(Plot):
    is_settled = False

    async def _use(self, user: User) -> None:
        while not self.is_settled:
            await user.run(1)
            await self.world.sleep_ms(PAUSE_MS)

    async def _scan(self, scanner: Scanner) -> None:
        while not self.is_settled:
            await scanner.run(1)
            await self.world.sleep_ms(PAUSE_MS)

    async def _trouble(self) -> None:
        world, random = self.world, self.world.random
        await world.sleep_ms(CALM_MS)
        weather = world.weather
        weather.storm = weather.store_storm = STORM
        weather.is_tried = True
        weather.troubles += 1
        first = self._dies(random.choice(sorted(self._leaders())))
        led = {region.region_id for region in self._regions() if region.leader == first.name}
        second = await self._second(led)
        weather.sometimes[TWO_DIED] += 1
        if random.random() < 0.6:
            await self._until(self._is_failing_over, FAILOVER_MS_MAX)
            self._leader_dies()
        if random.random() < 0.5:
            await world.sleep_ms(random.uniform(*APART_MS) / 4)
            left = [node for node in world.nodes if node.is_up]
            self._dies(random.choice(left).name)
            weather.sometimes[THREE_DIED] += 1
        world.loop.trace("nodes have died", first.name, second.name)
        await self._until(self._is_served, SERVED_MS_MAX, must="every region is led by who lives")
        await self._give_up(first)
        await world.sleep_ms(CALM_MS)
        weather.troubles -= 1
        self.is_settled = True

    async def _second(self, led: set[str]) -> Datanode:
        """The one that takes over from the first, or any other one."""
        world, random = self.world, self.world.random
        dead = {node.name for node in world.nodes if not node.is_up}

        def takers() -> set[str]:
            return {one.leader for one in self._regions() if one.region_id in led} - dead

        if random.random() < 0.6 and await self._until(lambda: bool(takers()), FAILOVER_MS_MAX):
            await world.sleep_ms(random.choice([1, 50, 2_000]))
            world.weather.sometimes[IN_ITS_TURN] += 1
            return self._dies(random.choice(sorted(takers())))
        await world.sleep_ms(random.uniform(*APART_MS))
        return self._dies(random.choice([node.name for node in world.nodes if node.is_up]))

    async def _give_up(self, node: Datanode) -> None:
        """An operator says that its disk is gone; its process starts again when all is over, on
        the disk that is there after all, and is a new node."""
        world = self.world
        path, body = f"/v1/nodes/{node.name}/decommission", {"reason": "sold", "lost": True}
        with suppress(MetaError):
            await world.session("operator").service.change("POST", path, body, wait_s=GIVEN_UP_S)
        if world.kv._store.get(bytes(RemovedNodeKey(DATANODE, node.name))) is not None:
            world.weather.sometimes[GIVEN_UP] += 1

    def _dies(self, name: str) -> Datanode:
        node = next(one for one in self.world.nodes if one.name == name)
        if self.world.random.random() < 0.5:
            node.kill()
        else:
            node.lose_power(0, kept_names=False)
        self.faults.append("node_dies")
        self.world.loop.trace("dies", name)
        return node

    def _leader_dies(self) -> None:
        world = self.world
        leading = [server for server in world.servers if server.leads]
        if leading:
            server = world.random.choice(leading)
            server.kill()
            world.weather.sometimes[LEADER_CHANGED] += 1
            self.faults.append("leader_dies")
            world.loop.spawn("world", self._returns(server))

    async def _returns(self, server: Any) -> None:
        await self.world.sleep_ms(DOWN_MS)
        if not server.is_up:
            server.start()

    # ---- what is looked at

    async def _until(self, is_so: Any, limit_ms: int, must: str | None = None) -> bool:
        world = self.world
        until = world.loop.time() + limit_ms / 1000
        while not is_so():
            if world.loop.time() > until:
                if must is not None:
                    unserved = [one.region_id for one in self._regions() if not self._serves(one)]
                    world.wrong(f"not within {limit_ms} ms: {must}; not {unserved}")
                return False
            await world.sleep_ms(self.look_ms)
        return True

    def _regions(self) -> Iterator[RegionRoute]:
        start, end = TableRouteKey.under()
        for item in self.world.kv._store.scan(start, end):
            yield from decode(TableRoute, item.value, key=item.key.decode()).region_routes

    def _leaders(self) -> set[str]:
        return {region.leader for region in self._regions()}

    def _is_failing_over(self) -> bool:
        start, end = ProcedureKey.under()
        return any(b"failover_" in item.value for item in self.world.kv._store.scan(start, end))

    def _is_served(self) -> bool:
        return all(self._serves(region) for region in self._regions())

    def _serves(self, region: RegionRoute) -> bool:
        """Whether its leader lives, has opened it, and has a lease of it."""
        node = next(one for one in self.world.nodes if one.name == region.leader)
        if not node.is_up or node.service is None:
            return False
        regions = node.service.regions
        return any(
            slot.region_id == int(region.region_id)
            and slot.epoch == region.epoch
            and slot.owner is not None
            and regions.has_lease(slot.region_id, slot.epoch)
            for slot in regions
        )
