"""The main job, told on real data: DDL, rows, a leader and a datanode killed, every row counted."""

import asyncio
import shutil
import signal
from dataclasses import dataclass

import pyarrow as pa

from metasrv.demo.catalog_versions import CatalogVersions
from metasrv.demo.copies import CopiesAct
from metasrv.demo.data import SCHEMA, TABLES_SQL, SourceTable
from metasrv.demo.drain import DrainAct
from metasrv.demo.online import OnlineChanges
from metasrv.demo.page import Bars, DemoFailed, DemoPage
from metasrv.demo.writer import Writer
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.rows import TableChecksum
from metasrv_base.clock import Clock
from metasrv_base.wire.api.cluster import LeaderBody
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import ColumnSpec, HashPartition, TableSpec

HALFWAY = TableSpec(
    name="halfway",
    columns=(
        ColumnSpec(name="id", type="int64", nullable=False),
        ColumnSpec(name="note", type="string"),
    ),
    primary_key=("id",),
    partition=HashPartition(by="hash", columns=("id",), count=6),
)
LOOK_MS = 200
FAILOVER_S_MAX = 150  # a cold Spark included; the regions serve long before
WRITABLE_MS_MAX = 30_000  # G36


@dataclass(slots=True)
class Story:
    """One telling. Each chapter raises DemoFailed if what it promises is not so."""

    page: DemoPage
    cluster: Playground
    client: AsyncClient
    clock: Clock
    flights: SourceTable
    weather: SourceTable
    bars: Bars

    async def tell(self) -> None:
        await self.tables()
        await self.rows()
        await self.changes()
        await self.catalog_versions()
        await self.online_changes()
        await self.leader_dies()
        await self.drained()
        await self.datanode_dies()
        await self.copies()
        await self.everything_is_there()

    # Chapters -----------------------------------------------------------------------------------

    async def tables(self) -> None:
        self.page.chapter("Tables by SQL text, each made by one etcd transaction")
        with self.page.step("the schema nyc and its tables, by one text"):
            await self.client.sql(TABLES_SQL)
        for name in (self.flights.name, self.weather.name, "events"):
            body = await self.client.tables.get(f"{SCHEMA}.{name}")
            nodes = ", ".join(sorted({str(region.leader) for region in body.regions}))
            self.page.say(
                f"[green]✓[/green] table {SCHEMA}.{name}: {len(body.regions)} regions on {nodes}"
            )

    async def rows(self) -> None:
        self.page.chapter("Real rows, durable before they are acknowledged")
        for source in (self.flights, self.weather):
            await self._load(source)

    async def _load(self, source: SourceTable) -> None:
        name, total = source.name, source.rows.num_rows
        before = self.clock.mono_ms()
        with self.bars(f"loading {name}") as shown:
            await self.client.table(f"{SCHEMA}.{name}").load(
                source.rows, on_progress=lambda done: shown.tell(f"loading {name}", done, total)
            )
        took = max(1, self.clock.mono_ms() - before)
        rate = total * 1000 // took
        self.page.say(f"[green]✓[/green] {total:,} rows of {name}  [dim]{rate:,} rows/s[/dim]")
        self.page.figure(f"{name} loaded", f"{total:,} rows in {took / 1000:.1f} s: {rate:,}/s")

    async def changes(self) -> None:
        self.page.chapter("Renamed, altered, dropped and taken back, without touching a row")
        before = await self.client.table(f"{SCHEMA}.weather").checksum()
        with self.page.step("weather renamed to hourly, into another schema"):
            await self.client.tables.rename(
                f"{SCHEMA}.weather", new_name="hourly", new_schema="public"
            )
        with self.page.step("column temp renamed to temperature, an option set"):
            await self.client.tables.alter(
                "main.public.hourly",
                [
                    {"op": "rename_column", "name": "temp", "new_name": "temperature"},
                    {"op": "set_options", "options": {"comment": "hourly"}},
                ],
            )
        with self.page.step("dropped"):
            await self.client.tables.drop("main.public.hourly")
        with self.page.step("undropped"):
            await self.client.tables.undrop("main.public.hourly")
        with self.page.step("named weather again"):
            await self.client.tables.rename(
                "main.public.hourly", new_name="weather", new_schema="nyc"
            )
        after = await self.client.table(f"{SCHEMA}.weather").checksum()
        self._must_be_same("weather", before, after)

    async def catalog_versions(self) -> None:
        await CatalogVersions(self.page, self.cluster, self.client, self.clock).tell()

    async def online_changes(self) -> None:
        table = f"{SCHEMA}.flights"
        await OnlineChanges(
            self.page, self.cluster, self.client, self.clock, table, self.bars
        ).tell()

    async def leader_dies(self) -> None:
        """The create is stopped half-way by a datanode that does not answer."""
        self.page.chapter("The leader is killed in the middle of a DDL")
        leader = await self._leader()
        stuck = "dn-3"
        await self.cluster.kill(stuck, signal.SIGSTOP)
        begun = self.clock.mono_ms()
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(self.client.tables.create(HALFWAY, SCHEMA, wait_s=120))
            halfway = await self._running("create_table")
            self.page.say(f"{halfway.kind} {halfway.id[:8]} waits for {stuck}, which is stopped")
            await self.cluster.kill(leader.id)
            self.page.say(f"[red]kill -9[/red] {leader.id}, the leader")
            await self.cluster.kill(stuck, signal.SIGCONT)
            made = await making
        now = await self._leader()
        took = (self.clock.mono_ms() - begun) / 1000
        self.page.must(
            now.id != leader.id,
            f"{now.id} leads now and has finished it: {len(made.regions)} regions",
        )
        self.page.figure("leader killed, its DDL finished after", f"{took:.1f} s")
        await self.cluster.restart(leader.id)

    async def drained(self) -> None:
        await DrainAct(self.page, self.cluster, self.client, self.clock, self.bars).tell()

    async def datanode_dies(self) -> None:
        self.page.chapter("A datanode is killed under a writer")
        victim = "dn-2"
        writer = Writer(self.client.table(f"{SCHEMA}.events"), self.clock)
        sums = {name: await self._checksum(name) for name in ("flights", "weather")}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.run())
            await writer.written(200, within_s=60)
            writer.longest_wait_ms = 0
            await self.cluster.kill(victim)
            killed = self.clock.mono_ms()
            self.page.say(f"[red]kill -9[/red] {victim}; the writer goes on")
            await self._failed_over(victim, killed, writer)
            writer.stop()
        for name, before in sums.items():
            self._must_be_same(name, before, await self._checksum(name))
        await asyncio.to_thread(shutil.rmtree, self.cluster.datanode_roots[victim])
        self.page.say(f"the disk of {victim} is removed")
        await self._nothing_lost(writer)

    async def copies(self) -> None:
        await self.cluster.restart("dn-2")
        self.page.say("dn-2 comes back with an empty disk")
        await CopiesAct(self.page, self.cluster, self.client, self.clock, self.bars).tell()

    async def _failed_over(self, victim: str, killed: int, writer: Writer) -> None:
        failover = await self._running("failover_node", within_s=60)
        detected = (self.clock.mono_ms() - killed) / 1000
        self.page.say(f"detected after {detected:.1f} s: {failover.kind} {failover.id[:8]}")
        await writer.written(200, within_s=120)
        waited = writer.longest_wait_ms
        self.page.must(
            waited <= WRITABLE_MS_MAX,
            f"every region writable again: the writer waited {waited / 1000:.1f} s at most",
        )
        with self.bars("Spark moves the regions' files") as shown:
            ended = await self.client.procedures.wait(
                failover.id,
                wait_s=FAILOVER_S_MAX,
                on_progress=lambda now: shown.tell(_progress_of(now), *_counts(now)),
            )
        moved = (self.clock.mono_ms() - killed) / 1000
        moves = await self.client.procedures.list(kind="failover_table")
        children = [move for move in moves if move.parent_id == ended.id]
        regions = sum(len((child.result or {}).get("regions", [])) for child in children)
        size = sum((child.result or {}).get("bytes", 0) for child in children)
        self.page.say(f"[green]✓[/green] Spark brought {regions} regions over, {size:,} bytes")
        self.page.figure("datanode killed, detected after", f"{detected:.1f} s")
        self.page.figure("longest wait of the writer", f"{waited / 1000:.1f} s")
        self.page.figure("all files moved by Spark after", f"{moved:.1f} s ({size:,} bytes)")

    async def _nothing_lost(self, writer: Writer) -> None:
        rows = await self.client.table(f"{SCHEMA}.events").to_arrow(["id"])
        ids = rows.column("id").to_pylist()
        present = set(ids)
        self.page.must(len(ids) == len(present), f"{len(ids):,} rows written, none twice")
        lost = writer.acknowledged - present
        self.page.must(
            not lost,
            f"all {len(writer.acknowledged):,} acknowledged rows are there, on no old disk",
        )
        self.page.must(
            present <= writer.acknowledged | writer.in_doubt, "and none that nobody wrote"
        )
        self.page.figure("rows acknowledged to the writer, lost", f"{len(lost)} of {len(ids):,}")

    async def everything_is_there(self) -> None:
        self.page.chapter("Every row is compared with its source")
        for source, renamed in ((self.flights, {}), (self.weather, {"temp": "temperature"})):
            name = source.name
            stored = await self.client.table(f"{SCHEMA}.{name}").to_arrow()
            names = [renamed.get(column, column) for column in source.rows.column_names]
            expected = source.rows.rename_columns(names)
            self.page.must(
                stored.num_rows == expected.num_rows,
                f"{name}: {stored.num_rows:,} rows of {expected.num_rows:,}",
            )
            self.page.must(_same(stored, expected), f"{name}: every value as in the source")

    # Looking ------------------------------------------------------------------------------------

    async def _running(self, kind: str, within_s: float = 30) -> ProcedureBody:
        """The first procedure of *kind* that is under way. Raises DemoFailed."""
        until = self.clock.mono_ms() + int(within_s * 1000)
        while self.clock.mono_ms() < until:
            for procedure in await self.client.procedures.list(kind=kind):
                if not procedure.done:
                    return procedure
            await self.clock.sleep_ms(LOOK_MS)
        raise DemoFailed(f"no {kind} began within {within_s} s")

    async def _leader(self) -> LeaderBody:
        """Returns the leader. Raises DemoFailed if nobody leads."""
        leader = (await self.client.cluster.get()).leader
        if leader is None:
            raise DemoFailed("nobody leads")
        return leader

    async def _checksum(self, name: str) -> TableChecksum:
        return await self.client.table(f"{SCHEMA}.{name}").checksum()

    def _must_be_same(self, name: str, before: TableChecksum, after: TableChecksum) -> None:
        same = (before.rows, before.checksum) == (after.rows, after.checksum)
        self.page.must(same, f"{name}: {after.rows:,} rows, checksum {after.checksum} as before")


def _same(stored: pa.Table, expected: pa.Table) -> bool:
    ordered = stored.select(expected.column_names).sort_by("id")
    return bool(ordered.cast(expected.schema).combine_chunks().equals(expected.combine_chunks()))


def _progress_of(procedure: ProcedureBody) -> str:
    return f"{procedure.kind}: {procedure.step}"


def _counts(procedure: ProcedureBody) -> tuple[int, int | None]:
    progress = procedure.progress
    return (progress.done, progress.total) if progress is not None else (0, None)
