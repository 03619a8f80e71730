"""A table with copies under writers, deaths, promotions and changes of its sets, drawn by a seed.

The control plane is real: procedures, routes, heartbeats and orders. The data plane is a sketch of
P5.9 to P5.11 (docs/protocols.md): a leader requires the set that it was told of, a copy that asks
to join too, and a row is acknowledged when all whom it requires have it. So what is judged is who
the routes name: every copy of a set has every acknowledged row.
"""

from dataclasses import dataclass, field
from random import Random

from keys.model.tables import CopyRole, RegionRoute, TableRoute
from keys.store.kv import Compare
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.machine import ProcedureState
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.serving import LOG, Serving
from tests.fakes.heartbeats import BEAT_MS
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import put_schema, reserve_ids
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.runs import begun
from tests.sim.loop import SimLoop, run

NODES = ("dn-1", "dn-2", "dn-3")
STEPS = 60
AT_ONCE_MAX = 2
ARRIVES = 0.75
"""Share of a leader's requests that arrive at once; others come late, or never."""
EVENTS = (
    "write",
    "write",
    "write",
    "die",
    "return",
    "leave",
    "join",
    "join",
    "late",
    "late",
    "move",
)
COPIES = ((("dn-2", IN_SYNC), ("dn-3", IN_SYNC)), (("dn-1", IN_SYNC), ("dn-3", IN_SYNC)))


async def with_table_of_three(cluster: Cluster, fence: Compare) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1", "dn-2"), COPIES)
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 2, 3), route)


@dataclass
class LeaderView:
    """The copies that one leader knows, at one epoch."""

    epoch: int
    version: int
    members: frozenset[str]
    """In sync, itself among them."""
    joining: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        return self.members | self.joining


@dataclass
class CopiedWorld:
    cluster: Cluster
    draw: Random
    views: dict[tuple[str, str], LeaderView] = field(default_factory=dict)
    """Region and node -> what the node knows as its leader."""
    synced: dict[tuple[str, str], int] = field(default_factory=dict)
    """Region and node -> the epoch whose leader the copy has cut back to."""
    acked: dict[str, set[str]] = field(default_factory=dict)
    requests: list[ChangeCopies] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    async def live(self) -> None:
        for number in range(STEPS):
            self.learn()
            await self._event(self.draw.choice(EVENTS), number)
            await self.cluster.clock.sleep_ms(self.draw.randrange(BEAT_MS))
            self.learn()
            self.judge()
        for node in self.nodes.values():
            node.alive = True
        if not await self.cluster.quiet():
            self.wrong.append(f"never ends: {self.cluster.living()}")
        self.judge()

    @property
    def nodes(self) -> dict[str, FakeNode]:
        return self.cluster.plane.nodes

    @property
    def route(self) -> TableRoute:
        ports = self.cluster.leader.ports
        assert ports is not None
        return ports.applied().tables[TABLE].route

    def learn(self) -> None:
        """Every leader reads the orders that it was told since."""
        for node, order in self.cluster.plane.told:
            if not isinstance(order, CreateRegion | OpenRegion) or order.copies is None:
                continue
            if order.role == "copy":
                continue
            where = (order.region_id, node)
            known, copies = self.views.get(where), order.copies
            at = (order.epoch, copies.version)
            if known is not None and (known.epoch, known.version) >= at:
                continue
            members = {each.node for each in copies.members if each.role != "learner"}
            joining = known.joining if known is not None and known.epoch == order.epoch else ()
            self.views[where] = LeaderView(*at, frozenset(members), frozenset(joining) - members)
        self.cluster.plane.told.clear()

    async def _event(self, event: str, number: int) -> None:
        self.counts[event] = self.counts.get(event, 0) + 1
        region = self.draw.choice(self.route.region_routes)
        dead = [node for node in self.nodes.values() if not node.alive]
        match event:
            case "write":
                for name, node in sorted(self.nodes.items()):
                    if node.alive and region.region_id in node.serving:
                        self.write(region.region_id, name, f"row-{number}")
            case "die" if len(dead) < AT_ONCE_MAX - 1:
                self.nodes[self.draw.choice(NODES)].die()
            case "return" if dead:
                self.draw.choice(dead).alive = True
            case "move" if dead:
                state = FailoverNode(node=self.draw.choice(dead).node_id, reason="test")
                await self._begin("failover_node", state)
            case "late" if self.requests:
                await self._begin("change_copies", self.draw.choice(self.requests))
            case "leave" | "join":
                await self._ask(region, event)

    async def _begin(self, kind: str, state: ProcedureState) -> None:
        if len(self.cluster.living()) < AT_ONCE_MAX:
            await start(self.cluster, kind, state)

    def write(self, region_id: str, leader: str, row: str) -> None:
        """The leader appends a row, at itself and at all copies that take it."""
        serving = self.nodes[leader].serving[region_id]
        view = self.view_of(region_id, leader, serving)
        folders = self.cluster.plane.storage.folders
        if view is None or serving.root not in folders:
            return
        folder = folders[serving.root]
        folder.files[LOG] = folder.files.get(LOG, frozenset()) | {row}
        took = {leader}
        for name, node in self.nodes.items():
            following = node.following.get(region_id)
            if name == leader or not node.alive or following is None:
                continue
            lags = name not in view.required and self.draw.random() < 0.5
            if following.epoch == serving.epoch and not lags:
                self.append(region_id, name, serving, row)
                took.add(name)
        if view.required <= took and len(view.members) >= 2:
            self.acked.setdefault(region_id, set()).add(row)
            self.counts["acked"] = self.counts.get("acked", 0) + 1

    def append(self, region_id: str, name: str, leader: Serving, row: str) -> None:
        """A copy that has not followed this epoch cuts back to its leader, and catches up first; a
        learner takes what it is sent."""
        folders, copy = self.cluster.plane.storage.folders, self.nodes[name].following[region_id]
        folder = folders[copy.root]
        if self.synced.get((region_id, name)) != leader.epoch:
            if self._counts_for(region_id, name):
                folder.files = dict(folders[leader.root].files)
            self.synced[region_id, name] = leader.epoch
        folder.files[LOG] = folder.files.get(LOG, frozenset()) | {row}

    def _counts_for(self, region_id: str, name: str) -> bool:
        views = [view for (where, _), view in self.views.items() if where == region_id]
        newest = max(views, key=lambda view: view.epoch)
        return name in newest.required

    def view_of(self, region_id: str, leader: str, serving: Serving) -> LeaderView | None:
        known = self.views.get((region_id, leader))
        if known is not None and known.epoch == serving.epoch:
            return known
        for region in self.route.region_routes:  # as it was given before any order
            if region.region_id == region_id and region.epoch == serving.epoch == 1:
                view = LeaderView(1, 1, frozenset(region.in_sync))
                return self.views.setdefault((region_id, leader), view)
        return None

    async def _ask(self, region: RegionRoute, event: str) -> None:
        """The leader asks that a copy which is away leaves, or that one that has all joins. It
        requires the latter from before it asks."""
        serving = self.nodes[region.leader].serving.get(region.region_id)
        if serving is None or not self.nodes[region.leader].alive:
            return
        view = self.view_of(region.region_id, region.leader, serving)
        if view is None or region.copies_version != view.version:
            return
        for copy in region.copies:
            node = self.nodes[copy.node]
            follows = node.following.get(region.region_id)
            has_role = copy.role is (IN_SYNC if event == "leave" else CopyRole.LEARNER)
            if not has_role or node.alive == (event == "leave"):
                continue
            if event == "join":
                if follows is None or follows.epoch != serving.epoch:
                    continue
                self.bring_up(region.region_id, copy.node, serving)
                self.require(view, copy.node)
            else:
                self.shrink(view, copy.node)
            request = ChangeCopies(
                table_id=TABLE,
                name="main.public.t",
                region_id=region.region_id,
                change="leave" if event == "leave" else "join",
                node=copy.node,
                root=copy.root,
                epoch=serving.epoch,
                version=view.version,
            )
            self.requests.append(request)
            if self.draw.random() < ARRIVES:
                await self._begin("change_copies", request)
            return

    def bring_up(self, region_id: str, name: str, leader: Serving) -> None:
        folders = self.cluster.plane.storage.folders
        copy = self.nodes[name].following[region_id]
        folders[copy.root].files = dict(folders[leader.root].files)
        self.synced[region_id, name] = leader.epoch

    def require(self, view: LeaderView, name: str) -> None:
        """A leader requires a copy from before it asks that it joins."""
        view.joining = view.joining | {name}

    def shrink(self, view: LeaderView, name: str) -> None:
        """A leader goes on to require a copy that is to leave, until it reads so in the route."""

    # ---- what must hold

    def judge(self) -> None:
        """Every copy of the set has every acknowledged row, and no two copies have one root."""
        folders = self.cluster.plane.storage.folders
        for region in self.route.region_routes:
            acked = self.acked.get(region.region_id, set())
            roots = [
                root
                for node, root in zip(region.nodes, region.roots, strict=True)
                if node in region.in_sync
            ]
            for root in roots:
                rows = {row for some in folders[root].files.values() for row in some}
                if missing := acked - rows:
                    self.wrong.append(f"{root} of the set lacks {sorted(missing)[:3]}: {region}")
            if len(set(region.roots)) < len(region.roots) or len(set(region.nodes)) < len(
                region.nodes
            ):
                self.wrong.append(f"two copies in one place: {region}")
        self.wrong += self.cluster.plane.violations


def lived(seed: int, world: type[CopiedWorld] = CopiedWorld) -> CopiedWorld:
    worlds: list[CopiedWorld] = []

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table_of_three, {})
        worlds.append(world(cluster, Random(seed)))
        await worlds[0].live()

    run(main, seed)
    return worlds[0]
