"""Faults of a world: each begins, lasts, and ends by itself. Drawn by the seed."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import Protocol

from keys.store.memory import MemoryKv
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.message_fates import STORE, Weather
from tests.sim.cluster.nodes import Datanode
from tests.sim.cluster.servers import Metasrv
from tests.sim.loop import SimLoop


class Stage(Protocol):
    """As much of a world as a fault needs."""

    loop: SimLoop
    weather: Weather
    kv: MemoryKv
    random: Random

    @property
    def servers(self) -> Sequence[Metasrv]: ...
    @property
    def nodes(self) -> Sequence[Datanode]: ...
    @property
    def frontends(self) -> Sequence[Frontend]: ...

    async def sleep_ms(self, ms: float) -> None: ...


COMPACTED = "etcd was compacted by an operator"

Fault = Callable[[Stage], Awaitable[None]]


async def leader_dies(stage: Stage) -> None:
    server = _leading(stage)
    server.kill()
    await stage.sleep_ms(stage.random.uniform(500, 9_000))
    if not server.is_up:
        server.start()


async def leader_stands_still(stage: Stage) -> None:
    """Longer than its lease; its callbacks go on where they were."""
    server = _leading(stage)
    ms = stage.random.randrange(4_000, 14_000)
    stage.loop.pause(server.node, ms)
    await stage.sleep_ms(ms)


async def leader_dies_writing(stage: Stage) -> None:
    """Its last write arrives when the next one leads, which may be the same server again."""
    server = _leading(stage)
    stage.weather.doomed[server.name] = server.kill
    await stage.sleep_ms(stage.random.uniform(1_000, 6_000))
    stage.weather.doomed.pop(server.name, None)
    if not server.is_up:
        server.start()


async def leader_stands_still_writing(stage: Stage) -> None:
    server, ms = _leading(stage), stage.random.randrange(4_000, 14_000)
    stage.weather.doomed[server.name] = partial(stage.loop.pause, server.node, ms)
    await stage.sleep_ms(ms)
    stage.weather.doomed.pop(server.name, None)


async def node_dies(stage: Stage) -> None:
    node = stage.random.choice(stage.nodes)
    node.kill()
    await _restarted(stage, node)


async def node_loses_power(stage: Stage) -> None:
    node = stage.random.choice(stage.nodes)
    kept_bytes = stage.random.choice([0, 0, 3, 40])
    torn = int(stage.loop.time() * 1000) if kept_bytes else None
    node.lose_power(kept_bytes, stage.random.random() < 0.3, torn)
    await _restarted(stage, node)


async def node_dies_at_its_disk(stage: Stage) -> None:
    """Between two operations, wherever that is."""
    node = stage.random.choice(stage.nodes)
    if node.disk is not None:
        node.disk.dies_in = stage.random.randrange(40)
    await stage.sleep_ms(stage.random.uniform(1_000, 8_000))
    if node.disk is not None:
        node.disk.dies_in = None
    if not node.is_up:
        stage.weather.sometimes["a node died at its disk"] += 1
        await _restarted(stage, node)


async def node_dies_twice(stage: Stage) -> None:
    """At its disk, and again, by a power loss, soon after it has opened its regions anew."""
    node = stage.random.choice(stage.nodes)
    if node.disk is not None:
        node.disk.dies_in = stage.random.randrange(25)
    await stage.sleep_ms(stage.random.uniform(2_000, 6_000))
    if node.is_up:
        node.kill()
    node.start()
    await stage.sleep_ms(stage.random.uniform(1_000, 8_000))
    node.lose_power(0, kept_names=False)
    await _restarted(stage, node)


async def two_nodes_die(stage: Stage) -> None:
    """Within a minute, perhaps with the leader between them. Of three nodes that is most of them,
    so nobody is failed over before one returns."""
    one, other = stage.random.sample(list(stage.nodes), 2)
    one.kill()
    await stage.sleep_ms(stage.random.uniform(100, 12_000))
    if stage.random.random() < 0.4:
        _leading(stage).kill()
    other.lose_power(0, kept_names=False)
    stage.weather.sometimes["two nodes that died within a minute"] += 1
    await stage.sleep_ms(stage.random.choice([500, 14_000]))
    processes: list[Datanode | Metasrv] = [*stage.nodes, *stage.servers]
    for process in processes:
        if not process.is_up:
            process.start()


async def node_stands_still(stage: Stage) -> None:
    """Longer than its leases."""
    node = stage.random.choice(stage.nodes)
    ms = stage.random.randrange(6_000, 20_000)
    stage.loop.pause(node.node, ms)
    await stage.sleep_ms(ms)


async def disk_is_full(stage: Stage) -> None:
    node = stage.random.choice(stage.nodes)
    disk = node.disk
    if disk is not None:
        disk.full = True
        await stage.sleep_ms(stage.random.uniform(1_000, 6_000))
        disk.full = False


async def link_is_cut(stage: Stage) -> None:
    """Between two hosts, in one direction or both."""
    hosts = [*(server.name for server in stage.servers), *(node.name for node in stage.nodes)]
    hosts += [frontend.name for frontend in stage.frontends]
    one, other = stage.random.sample([*hosts, "*"], 2)
    links = {(one, other)} | ({(other, one)} if stage.random.random() < 0.7 else set())
    stage.weather.cut |= links
    await stage.sleep_ms(stage.random.uniform(2_000, 14_000))
    stage.weather.cut -= links


async def server_without_store(stage: Stage) -> None:
    server = stage.random.choice(stage.servers)
    links = {(server.name, STORE), (STORE, server.name)}
    if stage.random.random() < 0.4:
        links.remove(stage.random.choice(sorted(links)))
    stage.weather.cut |= links
    await stage.sleep_ms(stage.random.uniform(2_000, 15_000))
    stage.weather.cut -= links


async def store_is_full(stage: Stage) -> None:
    stage.weather.is_full = True
    await stage.sleep_ms(stage.random.uniform(1_000, 8_000))
    stage.weather.is_full = False


async def store_is_silent(stage: Stage) -> None:
    stage.weather.cut.add(("*", STORE))
    await stage.sleep_ms(stage.random.uniform(1_000, 6_000))
    stage.weather.cut.discard(("*", STORE))


async def store_storms(stage: Stage) -> None:
    stage.weather.store_storm = stage.random.uniform(1.0, 5.0)
    await stage.sleep_ms(stage.random.uniform(3_000, 12_000))
    stage.weather.store_storm = 0.5


async def network_storms(stage: Stage) -> None:
    stage.weather.storm = stage.random.uniform(1.0, 4.0)
    await stage.sleep_ms(stage.random.uniform(3_000, 12_000))
    stage.weather.storm = 0.5


async def store_forgets(stage: Stage) -> None:
    """Compaction of all that is past: a watch that is behind must read anew."""
    await stage.kv.compact(stage.kv.revision, deadline_ms=1)
    stage.weather.sometimes[COMPACTED] += 1


async def frontend_dies(stage: Stage) -> None:
    frontend = stage.random.choice(stage.frontends)
    frontend.kill()
    await stage.sleep_ms(stage.random.choice([300, 3_000, 20_000]))
    if not frontend.is_up:
        frontend.start()


async def frontend_stands_still(stage: Stage) -> None:
    """Perhaps longer than its lease; what it was about to send it sends when it wakes."""
    frontend = stage.random.choice(stage.frontends)
    ms = stage.random.randrange(2_000, 24_000)
    stage.loop.pause(frontend.node, ms)
    await stage.sleep_ms(ms)


FAULTS: tuple[Fault, ...] = (
    leader_dies,
    leader_stands_still,
    leader_dies_writing,
    leader_stands_still_writing,
    node_dies,
    node_loses_power,
    node_dies_at_its_disk,
    node_dies_twice,
    two_nodes_die,
    node_stands_still,
    disk_is_full,
    link_is_cut,
    server_without_store,
    store_is_full,
    store_is_silent,
    store_storms,
    network_storms,
    store_forgets,
    frontend_dies,
    frontend_stands_still,
    frontend_stands_still,
)


def _leading(stage: Stage) -> Metasrv:
    """One that leads; if none does, any."""
    leading = [server for server in stage.servers if server.leads] or list(stage.servers)
    return stage.random.choice(leading)


async def _restarted(stage: Stage, node: Datanode) -> None:
    """Sooner than it is missed, or after its regions have gone."""
    await stage.sleep_ms(stage.random.choice([500, 4_000, 18_000]))
    if not node.is_up:
        node.start()
