"""Faults of nodes with copies: lost disks, links cut in one direction, wall clocks that are set."""

from collections.abc import Iterator
from functools import partial

from keys.model.tables import RegionRoute, TableInfo, TableInfoKey, TableRoute, TableRouteKey
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv_base.ids import RegionId, table_of
from tests.sim.cluster import faults
from tests.sim.cluster.faults import Fault, Stage
from tests.sim.cluster.nodes import Datanode

DISK_LOST = "a disk that was lost with copies of sets on it"
LEADER_LOST = "a disk that was lost under a leader"
CUT_ONE_WAY = "a link between two nodes that was cut in one direction"
LEFT_TOGETHER = "a node and a frontend that were left alone with each other"
JUMP_MS_MAX = 600_000


def every_region_of(kv: MemoryKv) -> Iterator[RegionRoute]:
    """Yields the routes of all regions, as they are stored now."""
    for item in list(kv._store.scan(*TableRouteKey.under())):
        yield from decode(TableRoute, item.value, key=item.key.decode()).region_routes


def regions_of(kv: MemoryKv) -> Iterator[RegionRoute]:
    """Yields the routes of all regions with copies."""
    return (region for region in every_region_of(kv) if region.copies_version)


def may_lose(kv: MemoryKv, node: Datanode) -> bool:
    """Whether every region with a copy on this node has another one in its set, whose disk lives
    (G51), and none borrows a root there. A learner may be the former leader of a copy that was lost
    before it served: then that has the rows. A table that is to have one copy may lose the others
    at any moment. A region that is being made has no rows; a copy that has not answered by the time
    it opens is not in its set then, so it may need each one that has."""
    lost, single = node.disks.lost_roots, _tables_of_one_copy(kv)
    return all(
        (
            table_of(RegionId(int(region.region_id))) not in single
            and (region.announced or bool(region.borrows))
            and any(name != node.name and root not in lost for name, root in set_of(region))
        )
        or node.name not in region.nodes
        for region in every_region_of(kv)
    ) and not any(
        root.startswith(node.root) for region in every_region_of(kv) for root in region.borrows
    )


def _tables_of_one_copy(kv: MemoryKv) -> set[int]:
    items = list(kv._store.scan(*TableInfoKey.under()))
    infos = [decode(TableInfo, item.value, key=item.key.decode()) for item in items]
    return {info.table_id for info in infos if info.replicas == 1}


def set_of(region: RegionRoute) -> Iterator[tuple[str, str]]:
    """Yields node and root of each copy of a set."""
    places = zip(region.nodes, region.roots, strict=True)
    return ((node, root) for node, root in places if node in region.in_sync)


async def node_loses_disk(stage: Stage) -> None:
    """The process dies with all that was on the disk of its node; another begins on an empty one,
    at once or when the node was taken for dead."""
    able = [node for node in stage.nodes if may_lose(stage.kv, node)]
    if not able:
        return
    node = stage.random.choice(able)
    regions = [region for region in regions_of(stage.kv) if node.name in region.nodes]
    roots = {
        root
        for region in regions
        for name, root in zip(region.nodes, region.roots, strict=True)
        if name == node.name
    }
    led = any(region.leader == node.name for region in regions)
    stage.weather.sometimes[DISK_LOST] += bool(roots)
    stage.weather.sometimes[LEADER_LOST] += led
    node.kill()
    node.disks.lose(node.root, roots)
    await stage.sleep_ms(stage.random.choice([100, 2_000, 9_000, 25_000]))
    if not node.is_up:
        node.start()


async def nodes_are_cut_one_way(stage: Stage) -> None:
    """Requests of one node do not reach another one, whose own requests do."""
    one, other = stage.random.sample([node.name for node in stage.nodes], 2)
    stage.weather.sometimes[CUT_ONE_WAY] += 1
    stage.weather.cut.add((one, other))
    await stage.sleep_ms(stage.random.uniform(1_000, 16_000))
    stage.weather.cut.discard((one, other))


async def node_is_cut_off(stage: Stage) -> None:
    """From all servers of metasrv, in one direction or both; other nodes still hear it."""
    node = stage.random.choice(stage.nodes)
    links = {(node.name, server.name) for server in stage.servers}
    if stage.random.random() < 0.5:
        links |= {(target, source) for source, target in links}
    stage.weather.cut |= links
    await stage.sleep_ms(stage.random.uniform(2_000, 16_000))
    stage.weather.cut -= links


async def clock_is_set(stage: Stage) -> None:
    """The wall clock of a node is set, forwards or back."""
    node = stage.random.choice(stage.nodes)
    node.clock._wall_start_ms += stage.random.randrange(-JUMP_MS_MAX, JUMP_MS_MAX)
    await stage.sleep_ms(1)


async def syncs_fail(stage: Stage) -> None:
    """Some syncs of one node fail; then its process dies, or its machine loses power, or neither,
    and it goes on with what it has."""
    random, node = stage.random, stage.random.choice(stage.nodes)
    if node.disk is not None:
        node.disk.syncs_fail = random.choice([1, 1, 2, 4])
    await stage.sleep_ms(random.uniform(500, 6_000))
    if node.disk is not None:
        node.disk.syncs_fail = 0
    end = random.choice([None, node.kill, partial(node.lose_power, 0, kept_names=False)])
    if end is not None:
        end()
        await stage.sleep_ms(random.choice([300, 3_000, 15_000]))
        if not node.is_up:
            node.start()


async def node_takes_no_orders(stage: Stage) -> None:
    """Its heartbeats go on, and so do rows."""
    node = stage.random.choice(stage.nodes)
    stage.weather.deaf.add(node.name)
    await stage.sleep_ms(stage.random.uniform(3_000, 30_000))
    stage.weather.deaf.discard(node.name)


async def node_is_left_with_a_frontend(stage: Stage) -> None:
    """A node is cut off from all other nodes and from metasrv, and a frontend from metasrv: it goes
    on to read there, and does not hear that the copies of the node have left their sets."""
    node, frontend = stage.random.choice(stage.nodes), stage.random.choice(stage.frontends)
    servers = [server.name for server in stage.servers]
    others = [other.name for other in stage.nodes if other is not node]
    lost = [(node.name, name) for name in (*servers, *others)]
    lost += [(frontend.name, name) for name in servers]
    links = {link for one, other in lost for link in ((one, other), (other, one))}
    stage.weather.sometimes[LEFT_TOGETHER] += 1
    stage.weather.cut |= links
    await stage.sleep_ms(stage.random.uniform(5_000, 16_000))
    stage.weather.cut -= links


COPY_FAULTS: tuple[Fault, ...] = (
    *(node_loses_disk, node_loses_disk, node_loses_disk),
    *(nodes_are_cut_one_way, nodes_are_cut_one_way, nodes_are_cut_one_way),
    *(node_is_cut_off, node_is_cut_off, clock_is_set),
    *(faults.node_stands_still, faults.node_stands_still, faults.node_stands_still),
    *(faults.node_dies, faults.node_dies, faults.node_loses_power, faults.node_dies_at_its_disk),
    *(faults.node_dies_twice, faults.two_nodes_die, faults.disk_is_full, faults.link_is_cut),
    *(faults.leader_dies, faults.leader_stands_still, faults.leader_dies_writing),
    *(faults.network_storms, faults.store_storms, faults.store_is_silent),
)
