"""The third act: a table's schema changes under a writer, and one of the frontends is frozen.

An index is built over the rows that are there while others come, change and go; a required column
arrives; a change is cancelled and leaves nothing. What was promised is verified after each.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metasrv.demo.page import Bars, DemoFailed, DemoPage
from metasrv.demo.traffic import FIRST_ID, Traffic
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.procedures import ProcedureBody, WaitingBody
from metasrv_base.wire.api.tables import TableBody

INDEX = "by_carrier_and_tail"
COLUMNS = ("carrier", "tailnum")
FROZEN = "fe-2"
LOOK_MS = 50
BEGIN_S_MAX = 30.0
BUILT_S_MAX = 240.0  # a cold Spark included
READS = 5
STATEMENTS = 6


@dataclass(slots=True)
class OnlineChanges:
    """Schema changes while rows are written. Each method raises DemoFailed if its promise is not
    kept."""

    page: DemoPage
    cluster: Playground
    client: AsyncClient
    clock: Clock
    table: str
    bars: Bars

    async def tell(self) -> None:
        self.page.chapter("A schema changes while a writer goes on, and a frontend is frozen")
        urls = list(self.cluster.frontend_urls.values())
        id = (await self.client.tables.get(self.table)).id
        writers = [
            Traffic(number, [*urls[number:], *urls[:number]], id, self.clock)
            for number in range(len(urls))
        ]
        async with asyncio.TaskGroup() as tasks:
            for writer in writers:
                tasks.create_task(writer.run())
            await self._written(writers)
            await self._index()
            await self._read_by_it()
            await self._checked()
            await self._column(writers)
            await self._cancelled(writers)
            for writer in writers:
                writer.stop()
        self._none_failed(writers)
        for writer in writers:
            await writer.clean()

    def _none_failed(self, writers: Sequence[Traffic]) -> None:
        sent = sum(writer.statements for writer in writers)
        failures = [error for writer in writers for error in writer.failures]
        longest = max(writer.longest_ms for writer in writers)
        self.page.figure("statements beside the changes, failed", f"{len(failures)} of {sent:,}")
        self.page.must(
            not failures,
            f"{sent:,} statements through {len(writers)} frontends, none failed; "
            f"the longest took {longest:,} ms {[*map(str, failures[:3])] or ''}",
        )

    async def _written(self, writers: Sequence[Traffic]) -> None:
        for writer in writers:
            await writer.went_on(STATEMENTS, within_s=60)

    # Chapters -----------------------------------------------------------------------------------

    async def _index(self) -> None:
        begun = self.clock.mono_ms()
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(
                self.client.indexes.create(
                    self.table, {"name": INDEX, "columns": COLUMNS}, wait_s=BUILT_S_MAX
                )
            )
            procedure = await self._seen(
                "create_index", lambda procedure: bool(procedure.transitions)
            )
            await self.cluster.kill(FROZEN, signal.SIGSTOP)
            self.page.say(f"[red]SIGSTOP[/red] {FROZEN}: {_last_shift(procedure)}")
            await self._waits_for_frozen()
            with self.bars("Spark makes the entries") as shown:
                ended = await self.client.procedures.wait(
                    procedure.id,
                    wait_s=BUILT_S_MAX,
                    on_progress=lambda now: shown.tell(f"index: {now.step}", *_counts(now)),
                )
            await making
        for transition in ended.transitions:
            shifts = ", ".join(f"{s.before} → {s.after}" for s in transition.shifts)
            waited = (
                f"everybody there after {transition.drain_ms:,} ms"
                if transition.drain_ms
                else "at once"
            )
            self.page.say(f"  version {transition.schema_version}: {shifts}  [dim]{waited}[/dim]")
        took = (self.clock.mono_ms() - begun) / 1000
        self.page.figure("index built beside the writer", f"{took:.1f} s, a frozen lease included")
        await self._thaws()

    async def _waits_for_frozen(self) -> None:
        def blocker(procedure: ProcedureBody) -> WaitingBody | None:
            behind = (w for w in procedure.waiting_for if w.kind == "schema_lease")
            return next((w for w in behind if w.holder == FROZEN), None)

        waiting = await self._seen("create_index", lambda procedure: blocker(procedure) is not None)
        behind = blocker(waiting)
        assert behind is not None, "it was looked for"
        left = f", {behind.expires_in_s} s at most" if behind.expires_in_s is not None else ""
        self.page.say(f"it waits for {behind.holder}{left}, and for nobody else")

    async def _thaws(self) -> None:
        """Resumes the frozen frontend: a process that slept through its lease must serve
        nothing."""
        child = self.cluster.children[FROZEN]
        await self.cluster.kill(FROZEN, signal.SIGCONT)
        await child.ended()
        self.page.must(
            child.returncode == 75,
            f"{FROZEN} wakes, finds its lease over and ends itself: no statement of an old schema",
        )
        await self.cluster.restart(FROZEN)

    async def _read_by_it(self) -> None:
        handle = self.client.table(self.table)
        everything = await handle.to_arrow([*COLUMNS, "id"])
        original = everything.filter(pc.less(everything["id"], FIRST_ID))
        carrier, tail = _busiest(original)
        by_index = await self._timed(lambda: self._found(carrier, tail))
        by_scan = await self._timed(lambda: self._scanned(carrier, tail))
        self.page.must(
            by_index.ids == by_scan.ids and len(by_index.ids) > 0,
            f"{carrier} {tail}: {len(by_index.ids)} flights by the index, the same by a scan",
        )
        ratio = by_scan.ms / max(by_index.ms, 0.1)
        self.page.say(f"index {by_index.ms:.1f} ms, scan {by_scan.ms:.1f} ms: {ratio:.0f} times")
        self.page.figure(
            "flights of one aircraft, by index / by scan",
            f"{by_index.ms:.1f} ms / {by_scan.ms:.1f} ms",
        )

    async def _checked(self) -> None:
        """Beside the writer: each region is looked at as of one moment."""
        check = await self.client.tables.check(self.table, wait_s=BUILT_S_MAX)
        self.page.must(
            check.clean and check.entries == check.rows,
            f"{check.rows:,} rows and {check.entries:,} entries held against the schema: each row "
            f"has its entry, and each entry its row {check.totals or ''}",
        )

    async def _column(self, writers: Sequence[Traffic]) -> None:
        with self.page.step("column checked bool NOT NULL DEFAULT false, beside the writer"):
            await self.client.tables.alter(
                self.table,
                [
                    {
                        "op": "add_column",
                        "column": {
                            "name": "checked",
                            "type": "boolean",
                            "nullable": False,
                            "default": False,
                        },
                    }
                ],
                wait_s=BUILT_S_MAX,
            )
        await self._written(writers)
        column = await self.client.table(self.table).to_arrow(["checked"])
        nulls = column.column("checked").null_count
        self.page.must(not nulls, f"{column.num_rows:,} rows have it, none was rewritten")

    async def _cancelled(self, writers: Sequence[Traffic]) -> None:
        """Cancels the change while the frozen frontend blocks it."""
        before = await self._shape()
        await self.cluster.kill(FROZEN, signal.SIGSTOP)
        async with asyncio.TaskGroup() as tasks:
            making = tasks.create_task(self._given_up())
            procedure = await self._seen(
                "create_index", lambda procedure: bool(procedure.transitions)
            )
            await self.client.procedures.cancel(procedure.id, reason="no longer wanted")
            await self.cluster.kill(FROZEN, signal.SIGCONT)
            await making
        ended = await self.client.procedures.get(procedure.id)
        self.page.must(ended.state == "cancelled", f"index by_origin: {ended.state} half-way")
        await self._written(writers)
        after = await self._shape()
        self.page.must(before == after, "the table is as if it had never been asked for")

    async def _given_up(self) -> None:
        with suppress(MetaError):
            await self.client.indexes.create(
                self.table,
                {"name": "by_origin", "columns": ("origin", "dest")},
                wait_s=BUILT_S_MAX,
            )

    # Looking ------------------------------------------------------------------------------------

    async def _found(self, carrier: str, tail: str) -> list[int]:
        pages = self.client.table(self.table).find(INDEX, eq=(carrier, tail), limit=100_000)
        return [id async for page in pages for id in _ids_there(page)]

    async def _scanned(self, carrier: str, tail: str) -> list[int]:
        rows = await self.client.table(self.table).to_arrow(["id", *COLUMNS])
        chosen = pc.and_(pc.equal(rows["carrier"], carrier), pc.equal(rows["tailnum"], tail))
        return _ids_there(rows.filter(chosen))

    async def _timed(self, read: Callable[[], Awaitable[list[int]]]) -> "_Reading":
        """The best of a few: what the machine does beside is not ours."""
        best: _Reading | None = None
        for _ in range(READS):
            before = self.clock.mono_ms()
            ids = await read()
            took = float(self.clock.mono_ms() - before)
            if best is None or took < best.ms:
                best = _Reading(sorted(ids), took)
        assert best is not None, "it was read"
        return best

    async def _shape(self) -> dict[str, object]:
        """The table without what counts its changes."""
        body: TableBody = await self.client.tables.get(self.table)
        return {
            "columns": body.columns,
            "indexes": body.indexes,
            "constraints": body.constraints,
            "options": body.options,
        }

    async def _seen(self, kind: str, when: Callable[[ProcedureBody], bool]) -> ProcedureBody:
        """The procedure of *kind* that is under way, once it is so. Raises DemoFailed."""
        until = self.clock.mono_ms() + int(BEGIN_S_MAX * 1000)
        while self.clock.mono_ms() < until:
            for procedure in await self.client.procedures.list(kind=kind):
                if not procedure.done:
                    whole = await self.client.procedures.get(procedure.id)
                    if when(whole):
                        return whole
            await self.clock.sleep_ms(LOOK_MS)
        raise DemoFailed(f"no {kind} came so far within {BEGIN_S_MAX} s")


@dataclass(frozen=True, slots=True)
class _Reading:
    ids: list[int]
    ms: float


def _busiest(rows: pa.Table) -> tuple[str, str]:
    """Carrier and tail number of the aircraft with the most flights."""
    identified = rows.filter(pc.is_valid(rows["tailnum"]))
    counted = identified.group_by(list(COLUMNS)).aggregate([("id", "count")])
    first = counted.sort_by([("id_count", "descending"), *((c, "ascending") for c in COLUMNS)])
    carrier, tail = (first.column(name)[0].as_py() for name in COLUMNS)
    return str(carrier), str(tail)


def _ids_there(rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Ids of the flights that the writer leaves alone, which do not change between two reads."""
    return [id for id in rows.column("id").to_pylist() if id < FIRST_ID]


def _last_shift(procedure: ProcedureBody) -> str:
    (*_, last) = procedure.transitions
    return ", ".join(f"{shift.name} is {shift.after}" for shift in last.shifts)


def _counts(procedure: ProcedureBody) -> tuple[int, int | None]:
    progress = procedure.progress
    return (progress.done, progress.total) if progress is not None else (0, None)
