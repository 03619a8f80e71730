"""A cluster whose tables have copies is lost, and restored beside what is left of it (P8).

Behind the backup a leader is switched, and a copy is lost whose folder was opened more often than
its leader's: rows are acknowledged without it. A copy has moved before the backup.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from metasrv.playground.plan import HOST, PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv.sdk.client import AsyncClient
from metasrv_base.rng import SystemRng
from metasrv_base.wire.api.tables import RegionRouteBody
from tests.process.drill.restore_drill import PREFIX, listens, metasrv, started_for
from tests.process.harness.copies.equal_copies import unequal_copies
from tests.process.harness.node_outages import rows_of
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running, table_spec

NODES = ("dn-1", "dn-2", "dn-3")
BEFORE = range(100)
AFTER = range(100, 150)
RESTORED = range(150, 160)
MOVED, LAGGING = "moved", "lagging"
WAIT_S = 120


@dataclass(frozen=True, slots=True)
class LostCopies:
    """The remains of a cluster whose processes were killed."""

    old: Rig
    file: Path
    leader: str
    """The node that led the table LAGGING, and acknowledged rows alone."""


async def copies_drilled(folder: Path) -> Seen:
    """Every acknowledged row is there, and each region has two copies again, which are equal."""
    async with running(folder, datanodes=len(NODES), flags={}) as old:
        lost = await _lived(old, folder)
        async with _restored(lost, folder) as rig, rig.client() as db:
            led_by = {name: (await _region(db, name)).leader for name in (MOVED, LAGGING)}
            found = {name: await _ids(db, name) for name in (MOVED, LAGGING)}
            for name in found:
                await rig.until(partial(_is_in_sync, db, name))
                await db.table(name).insert(_rows(RESTORED))
            await rig.converged()
            later = {name: await _ids(db, name) for name in found}
            unequal = [each for name in found for each in await unequal_copies(rig, db, name)]
            checked = await rig.check()
    acknowledged = {*BEFORE, *AFTER}
    kept = must(
        all_rows_of_a_copy_that_moved=found[MOVED] == acknowledged,
        all_rows_that_one_copy_lacked=found[LAGGING] == acknowledged,
        the_copy_with_all_rows_leads=led_by[LAGGING] == lost.leader,
        it_takes_rows=all(ids == {*acknowledged, *RESTORED} for ids in later.values()),
    )
    numbers = {name: len(ids) for name, ids in later.items()}
    return Seen({**numbers, "led by": led_by}, (*kept, *unequal, *checked))


async def _lived(rig: Rig, folder: Path) -> LostCopies:
    file = folder / "cluster.backup.gz"
    async with rig.client() as db:
        for name, least in ((MOVED, 2), (LAGGING, 1)):
            spec = {**table_spec(name, regions=1), "replicas": 2, "min_in_sync": least}
            await db.tables.create(spec)
            await db.table(name).insert(_rows(BEFORE))
        region = await _region(db, MOVED)
        (other,) = region.copies
        (free,) = {*NODES} - {region.leader, other.node}
        moving = await db.regions.move_copy(region.region_id, other.node, "a drill", free)
        await db.procedures.wait(moving.id, wait_s=WAIT_S)
        leader, follower = await _nodes(db, LAGGING)
        for _ in range(2):  # its folder is opened again by each of these
            await rig.kill(follower)
            await rig.restart(follower)
            await rig.until(partial(_is_in_sync, db, LAGGING))
        await rig.until(partial(_is_in_sync, db, MOVED))
        file.write_bytes(b"".join([part async for part in db.backups.download()]))

        written = iter(AFTER)
        # Its leader may be the node that was killed: one that has taken a row leads again.
        await db.table(MOVED).insert(_rows([next(written)]))
        region = await _region(db, MOVED)
        switching = await db.regions.switch_leader(region.region_id, "a drill")
        await db.procedures.wait(switching.id, wait_s=WAIT_S)
        await db.table(MOVED).insert(_rows(written))
        await rig.kill(follower)
        await rig.until(partial(_has_left, db, follower))
        await db.table(LAGGING).insert(_rows(AFTER))
        for id in ("m-1", "fe-1", *NODES):
            await rig.kill(id)
    return LostCopies(rig, file, leader)


@asynccontextmanager
async def _restored(lost: LostCopies, folder: Path) -> AsyncIterator[Rig]:
    etcd = lost.old.playground.etcd_urls
    (port,) = free_ports(1, SystemRng())
    for node in NODES:
        await started_for(lost.old, node, f"http://{HOST}:{port}")
    for node in NODES:
        await lost.old.until(partial(listens, lost.old, node))
    await metasrv(
        *("backup", "restore", str(lost.file), "--etcd", ",".join(etcd), "--prefix", PREFIX)
    )
    settings = PlaygroundOptions(
        folder / "restored",
        metasrvs=1,
        datanodes=0,
        frontends=1,
        port=port,
        etcd=etcd,
        key_prefix=PREFIX,
    )
    async with Playground(settings) as playground:
        rig = Rig(playground, lost.old.http)
        for node in NODES:
            await metasrv("node", "adopt", node, "--metasrv", rig.urls[0])
        for node in NODES:
            await lost.old.playground.ready(node)
        yield rig


def _rows(ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": id, "word": f"word {id}"} for id in ids]


async def _ids(db: AsyncClient, name: str) -> set[int]:
    return {row["id"] for row in await rows_of(db, name)}


async def _region(db: AsyncClient, name: str) -> RegionRouteBody:
    (region,) = (await db.tables.route(name)).regions
    return region


async def _nodes(db: AsyncClient, name: str) -> tuple[str, str]:
    """The leader, and the other copy."""
    region = await _region(db, name)
    assert region.leader is not None
    (other,) = region.copies
    return region.leader, other.node


async def _is_in_sync(db: AsyncClient, name: str) -> bool:
    copies = (await _region(db, name)).copies
    return [copy.role for copy in copies] == ["in-sync"]


async def _has_left(db: AsyncClient, node: str) -> bool:
    copies = (await _region(db, LAGGING)).copies
    return any((copy.node, copy.role) == (node, "learner") for copy in copies)
