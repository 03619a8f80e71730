"""The store away, servers that go, nodes that come back: refused meanwhile, whole afterwards.

What leaves a cluster as it was shares one, with tables of its own.
"""

import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from metasrv.playground.child import Child
from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng
from metasrv_base.wire.node.nodes import RegionColumns
from tests.process.harness.node_outages import rows_of
from tests.process.harness.rig import QUICK, Rig, running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

TABLES = "/v1/catalogs/main/schemas/public/tables"
LEASE_MS = 120_000
SHARED = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """No node is given up, and what serves rows outlives an outage of the store."""
    leases = {"region-lease-ms": "60000", "schema-lease-ms": "60000"}
    flags = {**QUICK, **leases, "phi-pause-ms": "60000"}
    async with running(tmp_path_factory.mktemp("outages"), metasrvs=2, flags=flags) as rig:
        yield rig


# The store -------------------------------------------------------------------------------------


async def create(rig: Rig, name: str, key: str = "") -> tuple[int, str]:
    """Status and code of one request to any server, within its own patience."""
    headers = {"prefer": "wait=2", "idempotency-key": key or name}
    try:
        answer = await rig.http.post(
            rig.urls[0] + TABLES, json=table_spec(name, regions=1), headers=headers, timeout=60
        )
    except httpx.TransportError as error:
        return 504, type(error).__name__
    return answer.status_code, str(answer.json().get("code", ""))


async def created(rig: Rig, name: str) -> bool:
    """Sent again with the same key until it is done."""
    status, _ = await create(rig, name)
    return status == 201


@SHARED
async def test_given_etcd_killed_when_it_is_back_then_changes_are_refused_meanwhile_and_then_done(
    rig: Rig,
) -> None:
    async with rig.client() as db:
        await db.tables.create(table_spec("before"))
        writer = Writer(db.table("before"), statement_ms=60_000)
        await writer.write()
        await rig.kill("etcd")
        await writer.write()
        away = [await create(rig, f"away_{number}") for number in range(3)]
        read = await rig.http.get(f"{rig.urls[0]}{TABLES}/before")
        await writer.write()
        written = dict(writer.told)
        await rig.restart("etcd")
        back_ms = rig.clock.mono_ms()
        for number in range(3):
            await rig.until(partial(created, rig, f"away_{number}"))
        back_ms = rig.clock.mono_ms() - back_ms
        await rig.converged()
        rows = await rows_of(db, "before")
        names = {table.name for table in await db.tables.list()}
        agreement = await rig.agreement()

    print(f"away: {away}, read {read.status_code}; changes done {back_ms} ms after it was back")
    assert {status for status, _ in away} <= {503, 504}
    assert read.status_code in (200, 503)
    assert set(written.values()) == {"ok"}, "rows need no store while leases last"
    assert names >= {"before", "away_0", "away_1", "away_2"}
    assert wrong_rows(rows, [writer]) == []
    assert agreement.wrong == []


@SHARED
async def test_given_etcd_stopped_beyond_the_lease_when_it_wakes_then_one_leader_goes_on(
    rig: Rig,
) -> None:
    old = await rig.leader()
    await rig.kill("etcd", signal.SIGSTOP)
    await rig.until(lambda: leads_no_more(rig, old))
    during = await create(rig, "during")
    await rig.kill("etcd", signal.SIGCONT)
    await rig.until(lambda: created(rig, "during"))
    await rig.until(lambda: one_leads(rig))
    await rig.converged()
    agreement = await rig.agreement()

    print(f"during: {during}")
    assert during[0] in (503, 504)
    assert agreement.wrong == []


async def leads_no_more(rig: Rig, id: str) -> bool:
    return not await rig.leads(id)


async def one_leads(rig: Rig) -> bool:
    return sum([await rig.leads(id) for id in rig.servers]) == 1


# Servers ---------------------------------------------------------------------------------------


async def test_given_a_leader_asked_to_end_then_another_leads_at_once_and_nodes_find_it(
    tmp_path: Path,
) -> None:
    leases = {"leader-ttl-ms": str(LEASE_MS), "schema-lease-ms": str(2 * LEASE_MS)}
    flags = {**QUICK, **leases}  # which nobody waits for
    async with running(tmp_path, metasrvs=2, flags=flags) as rig, rig.client() as db:
        await db.tables.create(table_spec("t"))
        old = await rig.leader()
        follower = next(id for id in rig.servers if id != old)
        refused = await heartbeat_at(rig, follower)
        before_ms = rig.clock.mono_ms()
        rig.playground.children[old].send(signal.SIGTERM)
        new = await rig.leader(other_than=old)
        handover_ms = rig.clock.mono_ms() - before_ms
        nodes = await rig.until(lambda: all_heard(rig, new))
        await db.tables.rename("t", "u")
        ended = await rig.playground.children[old].ended()
        agreement = await rig.agreement()

    print(f"another leads after {handover_ms} ms; the first ended with {ended}")
    assert refused.status_code == 421
    assert refused.json()["code"] == "not-leader"
    assert refused.json()["facts"]["leader_url"] == rig.url(old)
    assert handover_ms < LEASE_MS / 2
    assert {node["id"] for node in nodes} == {"dn-1", "dn-2"}
    assert ended == 0
    assert agreement.wrong == []


async def heartbeat_at(rig: Rig, id: str) -> Any:
    node, found = next(iter((await rig.keys("__node/")).items()))
    cluster = (await rig.keys("__cluster"))["__cluster"].value["cluster_id"]
    beat = {
        "cluster_id": cluster,
        "node_id": found.value["node_id"],
        "incarnation": found.value["incarnation"],
        "sequence": 0,
        "address": found.value["address"],
        "zone": found.value["zone"],
        "version": found.value["version"],
        "term": 0,
        "resources": {**found.value["resources"], "memory_free_bytes": 1, "disk_free_bytes": 1},
        "regions": RegionColumns.of(()).model_dump(),
    }
    name = node.rpartition("/")[2]
    url = f"{rig.url(id)}/internal/v1/nodes/{name}/heartbeat"
    return await rig.http.put(url, json=beat)


async def all_heard(rig: Rig, leader: str) -> list[Any] | None:
    found = await rig.ask(rig.url(leader) + "/v1/nodes")
    nodes: list[Any] = found["nodes"] if found else []
    return nodes if nodes and all(one["heard_ms_ago"] is not None for one in nodes) else None


# Nodes -----------------------------------------------------------------------------------------


@SHARED
async def test_given_a_node_killed_when_started_in_place_then_it_serves_its_regions_again(
    rig: Rig,
) -> None:
    async with rig.client() as db:
        await db.tables.create(table_spec("t"))
        writer = Writer(db.table("t"), statement_ms=60_000)
        for _ in range(5):
            await writer.write()
        before = await rig.keys("__table_route/")
        incarnations = {n.id: n.incarnation for n in await db.nodes.list()}
        await rig.kill("dn-1")
        await rig.restart("dn-1")
        since_ms = rig.clock.mono_ms()
        await writer.write()
        regained_ms = rig.clock.mono_ms() - since_ms
        rows = await rows_of(db, "t")
        nodes = {n.id: n.incarnation for n in await db.nodes.list()}
        after = await rig.keys("__table_route/")

    print(f"writable {regained_ms} ms after it served again")
    assert set(writer.told.values()) == {"ok"}
    assert wrong_rows(rows, [writer]) == []
    assert nodes["dn-1"] != incarnations["dn-1"]
    assert before == after, "no failover: the same epoch, the same root"


async def test_given_two_processes_with_one_id_then_the_newest_alone_is_heard(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, datanodes=1) as rig, rig.client() as db:
        await db.tables.create(table_spec("t"))
        writer = Writer(db.table("t"), statement_ms=60_000)
        await writer.write()
        first = rig.playground.children["dn-1"]
        same_root = second_process(rig, "same_root", first.program.root)
        other_root = second_process(rig, "other_root", tmp_path / "other" / "root")
        try:
            await same_root.start()
            refused = await same_root.ended()
            await other_root.start()
            ended = await first.ended()
            await writer.write()
            rows = await rows_of(db, "t")
            (node,) = await db.nodes.list()
        finally:
            await same_root.stop()
            await other_root.stop()

    assert refused == 78, "one process at a time in one root"
    assert ended == 78, "the older one must never serve again"
    assert node.address == other_root.program.url
    assert set(writer.told.values()) == {"ok"}
    assert wrong_rows(rows, [writer]) == []


def second_process(rig: Rig, name: str, root: Path) -> Child:
    """The same node id from another command line."""
    first = rig.playground.children["dn-1"]
    (port,) = free_ports(1, SystemRng())
    address = f"127.0.0.1:{port}"
    root.mkdir(parents=True, exist_ok=True)
    changed = {"--root": str(root), "--listen": address, "--ready-file": str(root.parent / name)}
    argv = [
        f"{flag}={changed.get(flag, value)}" if sign else flag
        for flag, sign, value in (word.partition("=") for word in first.program.argv)
    ]
    program = type(first.program)(
        id=name,
        role="datanode",
        argv=tuple(argv),
        url=f"http://{address}",
        folder=root.parent,
        ready_file=root.parent / name,
        probe=f"http://{address}/readyz",
    )
    return Child(program, root.parent, first.env, Path.cwd())
