"""A cluster is lost, restored beside what is left of it, and has its nodes again (P8).

A backup is taken under writers and changes of tables. The cluster goes on for a while, and every
process of it is killed. The backup becomes a cluster under another prefix of the same etcd, by the
commands of docs/operate/backups.md; the datanodes are started again, and adopted.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from metasrv.host.toolchain import checkout
from metasrv.playground.plan import HOST, PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.playground.ports import free_ports
from metasrv_base.rng import SystemRng
from metasrv_base.wire.node.orders import CloseRegion, OrderRequest
from tests.process.harness.changed_table import Kept, Reader, wrong_of_columns, wrong_of_indexes
from tests.process.harness.ddl_loop import IN_PLACE, TABLE, TABLES, Changes, spec
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, Spec, running, table_spec
from tests.process.harness.row_writer import RowWriter, wrong_of_rows

NODES = ("dn-1", "dn-2")
PREFIX = "restored/"
BEFORE = [{"id": id, "word": "before"} for id in range(100)]
AFTER = [{"id": id, "word": "after"} for id in range(50, 80)]
FOUND = {"moved": 2, "dropped": 2, "index-dropped": 1}
"""Differences between backup and disks: a table was truncated, another one purged, an index
dropped."""
DROPPED = "a_while"
"""A column that is dropped after the backup. The changes may have dropped one more."""
STATEMENTS = 6
"""Inserts of each writer behind the backup."""


@dataclass(slots=True)
class Lost:
    """A cluster that is no more: what its clients were told."""

    old: Rig
    file: Path
    writers: Sequence[RowWriter]
    changes: int
    kept: Sequence[Kept]
    """Columns that the backup knows."""
    faults: list[str]
    next_column: int
    """The id of the next column that the old cluster would have made in the table that changed."""
    cluster_id: str | None
    late_id: int
    """Id of a table that was made behind the backup."""


async def metasrv(*words: str) -> str:
    """The command as a person types it; its output. It must succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "metasrv.cli.main", *words),
        cwd=checkout(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, f"metasrv {' '.join(words)}: {out.decode()}{err.decode()}"
    return out.decode()


# The cluster that is lost -----------------------------------------------------------------------


async def lived(rig: Rig, folder: Path) -> Lost:
    """Writers and changes, a backup beside them, more of both, and the end of all processes."""
    file = folder / "cluster.backup.gz"
    changes = Changes(rig, fills=False)
    async with rig.client() as db:
        await db.tables.create(spec())
        await db.tables.create(table_spec("cut"))
        await db.tables.create(table_spec("ended"))
        for name in ("cut", "ended"):
            await db.table(name).insert(BEFORE)
        for name in ("by_word", "for_a_while"):
            await changes.create_index(name, "word")
        brief = {"name": DROPPED, "type": "string", "nullable": True}
        await changes.alter({"op": "add_column", "column": brief})
        url = rig.url("fe-1") + "/v1/tables/main/public/t"
        writers = [RowWriter(url, 1_000_000 * n, rig.http) for n in (1, 2)]
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(writer.run())
            changing = tasks.create_task(changes.run())
            await rig.until(lambda: _kept(changes))
            kept = list(changes.kept)
            file.write_bytes(b"".join([part async for part in db.backups.download()]))
            await _wrote(rig, writers)
            changes.is_over = True
            await changing
            await changes.drop_index("for_a_while")
            await changes.alter({"op": "drop_column", "name": DROPPED})
            await db.tables.truncate("cut", wait_s=60)
            await db.table("cut").insert(AFTER)
            await db.tables.drop("ended", wait_s=60)
            await db.tables.purge("drill", "ended", wait_s=60)
            await db.tables.create(table_spec("late"))
            late = await db.tables.get("late")
            await _wrote(rig, writers)
            info = await info_of(rig, "t")
            cluster = await db.cluster.get()
            for id in ("m-1", "fe-1", *NODES):
                await rig.kill(id)
            for writer in writers:
                writer.is_over = True
    faults = [*changes.faults, *(fault for writer in writers for fault in writer.faults)]
    return Lost(
        rig,
        file,
        writers,
        changes.done,
        kept,
        faults,
        info["next_column_id"],
        cluster.cluster_id,
        late.id,
    )


async def info_of(rig: Rig, name: str) -> Spec:
    """Returns the stored table."""
    infos = [key.value for key in (await rig.keys("__table_info/")).values()]
    (info,) = [info for info in infos if info["name"] == name]
    return dict(info)


async def _kept(changes: Changes) -> bool:
    return bool(changes.kept)


async def _wrote(rig: Rig, writers: Sequence[RowWriter]) -> None:
    before = [writer.count("insert") for writer in writers]

    async def look() -> bool:
        pairs = zip(writers, before, strict=True)
        return all(writer.count("insert") >= count + STATEMENTS for writer, count in pairs)

    await rig.until(look)


# The cluster that is restored -------------------------------------------------------------------


@asynccontextmanager
async def restored(lost: Lost, folder: Path) -> AsyncIterator[Rig]:
    """The steps of docs/operate/backups.md."""
    etcd = lost.old.playground.etcd_urls
    (port,) = free_ports(1, SystemRng())
    for node in NODES:
        await started_for(lost.old, node, f"http://{HOST}:{port}")
    for node in NODES:
        await lost.old.until(partial(listens, lost.old, node))
    urls = [lost.old.url(node) for node in NODES]
    held = [word for url in urls for word in ("--inventory", url)]
    planned = json.loads(
        await metasrv("backup", "restore", str(lost.file), "--plan", "--json", *held)
    )
    told = planned["inventories"]
    fates = Counter(each["fate"] for each in told["findings"])
    columns = [each for each in told["findings"] if each["fate"] == "column-dropped"]
    assert any(f"column {DROPPED} was" in each["reason"] for each in columns), told
    assert fates - Counter({"column-dropped": len(columns)}) == FOUND, told
    assert told["unknown_tables"] == [lost.late_id], told
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
        metasrv_flags=IN_PLACE,
    )
    async with Playground(settings) as playground:
        rig = Rig(playground, lost.old.http)
        await metasrv("node", "adopt", NODES[0], "--metasrv", rig.urls[0])
        async with rig.client() as db:
            adopted = await db.nodes.adopt(NODES[1])
        for node in NODES:
            await lost.old.playground.ready(node)
        assert Counter(each.fate for each in adopted.findings) == FOUND, adopted
        assert adopted.awaited == ()
        await resumed(rig)
        async with rig.client() as db:  # its nodes make again what the lost cluster had them drop
            await db.tables.truncate("ended", wait_s=60)
        await rig.converged()
        yield rig


async def resumed(rig: Rig) -> None:
    """Resumes the procedures that the restore has paused."""
    for id, record in (await rig.records()).items():
        assert record["paused_at_ms"] is not None, record
        async with rig.client() as db:
            await db.procedures.resume(id)


async def started_for(old: Rig, node: str, url: str) -> None:
    """Starts it for the server of the new cluster, in which it waits to be adopted."""
    child = old.playground.children[node]
    others = [word for word in child.program.argv if not word.startswith("--metasrv=")]
    child.program = replace(child.program, argv=(*others, f"--metasrv={url}"))
    await child.start()


async def listens(old: Rig, node: str) -> bool:
    return await old.ask(old.url(node) + "/node/v1/regions") is not None


# The scenario -----------------------------------------------------------------------------------


async def drilled(folder: Path) -> Seen:
    async with running(folder, datanodes=len(NODES), flags=IN_PLACE) as old:
        lost = await lived(old, folder)
        async with restored(lost, folder) as rig:
            reader = Reader(rig, rig.url("fe-1") + "/v1/tables/main/public/t", rig.urls[0] + TABLE)
            rows = await reader.rows("/scan")
            wrong = [
                *lost.faults,
                *wrong_of_rows(rows, lost.writers),
                *wrong_of_columns(rows, lost.kept, lost.writers),
                *[text async for text in wrong_of_indexes(reader, rows, {"by_word": "word"})],
                *await wrong_of_new(rig, lost),
                *await wrong_of_the_old(rig, lost),
                *await rig.check(),
            ]
    made = must(rows_were_written=bool(rows), columns_were_kept=bool(lost.kept))
    return Seen({"rows": len(rows)}, (*made, *wrong))


async def wrong_of_new(rig: Rig, lost: Lost) -> list[str]:
    """Changes of the new cluster get ids that the old one never gave out."""
    async with rig.client() as db:
        cut = await db.table("cut").to_arrow()
        ended = await db.table("ended").to_arrow()
        await db.table("ended").insert(AFTER)
        ended_later = await db.table("ended").to_arrow()
        made = await db.tables.create(table_spec("more"))
        await db.table("more").insert(BEFORE)
        more = await db.table("more").to_arrow()
    changes = Changes(rig, fills=False, done=lost.changes)  # keys of the old cluster count still
    column = {"name": "fresh", "type": "int64", "nullable": False, "default": 7}
    await changes.alter({"op": "add_column", "column": column})
    columns = (await info_of(rig, "t"))["columns"]
    (fresh,) = [one["id"] for one in columns if one["name"] == "fresh"]
    return [
        *changes.faults,
        *must(
            later_rows_of_a_truncated_table=sorted(cut.to_pylist(), key=lambda row: row["id"])
            == AFTER,
            no_rows_of_a_truncated_table_that_was_purged=ended.num_rows == 0,
            rows_of_a_truncated_table_that_was_purged=ended_later.num_rows == len(AFTER),
            rows_of_a_new_table=more.num_rows == len(BEFORE),
            a_new_table_has_a_new_id=made.id > lost.late_id,
            a_new_column_has_a_new_id=fresh >= lost.next_column,
        ),
    ]


async def wrong_of_the_old(rig: Rig, lost: Lost) -> list[str]:
    """A server of the old cluster that is back is refused by the nodes, which serve the new one."""
    old = lost.old
    await old.playground.restart("m-1")
    term = (await old.told(old.urls[0] + "/v1/cluster"))["leader"]["term"]
    regions = (await rig.told(rig.urls[0] + TABLE))["regions"]
    refused = [
        await _code(
            old,
            OrderRequest(
                cluster_id=lost.cluster_id or "",
                node_id=region["leader"],
                term=term,
                orders=[CloseRegion(number=1, region_id=region["region_id"], epoch=99)],
            ),
        )
        for region in regions
    ]
    anew = await old.http.post(
        old.urls[0] + TABLES, json=table_spec("of_old"), headers={"prefer": "wait=1"}
    )
    async with rig.client() as db:
        rows = await db.table("t").to_arrow()
    wrong = must(
        orders_of_the_old_cluster_are_refused=set(refused) == {"wrong-cluster"},
        the_old_cluster_makes_no_region=anew.status_code in (202, 503),
        nodes_serve_the_new_cluster=rows.num_rows > 0,
    )
    return list(wrong)


async def _code(old: Rig, request: OrderRequest) -> str:
    url = old.url(request.node_id) + "/node/v1/orders"
    headers = {"content-type": "application/json"}
    answer = await old.http.post(url, content=request.model_dump_json(), headers=headers)
    return str(answer.json().get("code"))
