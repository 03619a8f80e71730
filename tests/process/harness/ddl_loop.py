"""A table changes in a loop under writers on three frontends, and every process is hit in turn.

Columns come, get another default and go; indexes come and go. Each blow holds until a change is
done under it, or for a time. At the end every row, default and index is what the writers and the
changes were told. Programs that end are started again, as an operator's supervisor would.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.errors import Unavailable
from tests.process.harness.backups import BackupTaker
from tests.process.harness.changed_table import (
    FIRST,
    Kept,
    Reader,
    wrong_of_columns,
    wrong_of_indexes,
)
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import QUICK, Rig, Spec
from tests.process.harness.row_writer import RowWriter, wrong_of_rows

TABLES = "/v1/catalogs/main/schemas/public/tables"
TABLE = f"{TABLES}/t"
LEADER = "leader"
FLAGS = {**QUICK, "schema-lease-ms": "4000", "transaction-age-max-ms": "2000"}
# Nobody takes over a node's regions: it is started again, or woken, before that.
IN_PLACE = {**FLAGS, "phi-pause-ms": "60000"}
KEEPS = 3  # of so many columns one stays
ENDS = frozenset({0, 75, -signal.SIGKILL})
"""Exit codes that a program may have: told to end, without a lease, killed."""
CONVERGE_S = 240.0


@dataclass(frozen=True, slots=True)
class Blow:
    """`who`: an id, or whoever leads. *hold_ms* None: until a change is done under it."""

    who: str
    signal: signal.Signals
    hold_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    blows: Sequence[Sequence[Blow]]
    """Blows; those of one line happen at the same time."""
    flags: Mapping[str, str]
    """Flags of the metasrvs."""
    fills: bool = False
    """Whether indexes of rows are made in the loop: their entries are filled by Spark; and Spark
    has the last word on rows and entries."""
    alone_ms: int = 0
    """For so long nothing changes and nobody is hit: what statements take then."""


HIT = (LEADER, "dn-1", "fe-1", "dn-2", "fe-2")
LONG = Plan(
    [[Blow(who, number)] for who in HIT for number in (signal.SIGKILL, signal.SIGSTOP)],
    FLAGS,
    fills=True,
    alone_ms=20_000,
)
"""Nodes are given up here, and their regions taken over."""


@dataclass
class Changes:
    """The loop. Each change is asked for with one key until its end is told."""

    rig: Rig
    fills: bool
    done: int = 0
    kept: list[Kept] = field(default_factory=list)
    indexes: dict[str, str] = field(default_factory=dict)
    """Indexes that stay, with their column."""
    faults: list[str] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        for number in count(1):
            if self.is_over:
                return
            await self._cycle(number)

    async def _cycle(self, number: int) -> None:
        name = f"c{number}"
        column = {"name": name, "type": "int64", "nullable": False, "default": number}
        added_ms = await self.alter({"op": "add_column", "column": column})
        default = {"op": "set_default", "name": name, "default": FIRST + number}
        changed_ms = await self.alter(default)
        if self.fills:
            await self.create_index(f"by_{name}", name)
        if number % KEEPS == 1:
            self.kept.append(Kept(name, number, added_ms, changed_ms))
            return
        if self.fills:
            await self.drop_index(f"by_{name}")
        await self.alter({"op": "drop_column", "name": name})

    async def create_index(self, name: str, column: str) -> None:
        await self._asked("POST", TABLE + "/indexes", 201, {"name": name, "columns": [column]})
        self.indexes[name] = column

    async def drop_index(self, name: str) -> None:
        await self._asked("DELETE", f"{TABLE}/indexes/{name}", 204)
        del self.indexes[name]

    async def alter(self, operation: Mapping[str, Any]) -> tuple[int, int]:
        return await self._asked("POST", TABLE + "/alter", 200, {"operations": [operation]})

    async def _asked(self, method: str, path: str, ok: int, body: Any = None) -> tuple[int, int]:
        """When it was first asked for and when its end was told."""
        key, urls = f"change-{self.done}", self.rig.urls
        asked_ms = self.rig.clock.mono_ms()
        turns = count(self.done)

        async def look() -> httpx.Response | None:
            url = urls[next(turns) % len(urls)] + path
            headers = {"idempotency-key": key, "prefer": "wait=2"}
            try:
                answer = await self.rig.http.request(
                    method, url, json=body, headers=headers, timeout=4
                )
            except httpx.TransportError:
                return None
            return None if answer.status_code in (202, 503, 504) else answer

        answer = await self.rig.until(look, CONVERGE_S)
        if answer.status_code != ok:
            self.faults.append(f"{method} {path} {body}: {answer.status_code} {answer.text}")
        self.done += 1
        return asked_ms, self.rig.clock.mono_ms()


# Blows ------------------------------------------------------------------------------------------


@asynccontextmanager
async def kept_running(rig: Rig) -> AsyncIterator[list[str]]:
    """Whatever ends is started again. The list names those that ended as they may not."""
    faults: list[str] = []

    async def keep(id: str) -> None:
        while True:
            code = await rig.playground.children[id].ended()
            if code not in ENDS:
                faults.append(f"{id} ended with {code}: {rig.playground.children[id].last_words()}")
            with suppress(Unavailable):  # it ended again
                await rig.restart(id)

    ids = [one.id for one in rig.playground.programs if one.role != "etcd"]
    async with asyncio.TaskGroup() as tasks:
        keepers = [tasks.create_task(keep(id)) for id in ids]
        yield faults
        await rig.until(lambda: _all_serve(rig, ids), CONVERGE_S)
        for keeper in keepers:
            keeper.cancel()


async def _all_serve(rig: Rig, ids: Sequence[str]) -> bool:
    return None not in [await rig.ask(rig.url(id) + "/readyz") for id in ids]


async def strike(rig: Rig, changes: Changes, blow: Blow) -> None:
    id = await rig.leader() if blow.who == LEADER else blow.who
    before = changes.done
    rig.playground.children[id].send(blow.signal)
    if blow.hold_ms is None:
        await _changed(rig, changes, before + 2)  # the first may have been as good as done
    else:
        await rig.clock.sleep_ms(blow.hold_ms)
    rig.playground.children[id].send(signal.SIGCONT)


async def _changed(rig: Rig, changes: Changes, done: int) -> None:
    async def look() -> bool:
        return changes.done >= done

    await rig.until(look, CONVERGE_S)


# The scenario -----------------------------------------------------------------------------------


def spec() -> Spec:
    return {
        "name": "t",
        "columns": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "word", "type": "string", "nullable": True},
        ],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": 3},
    }


async def changed_under_load(folder: Path, plan: Plan) -> Seen:
    settings = PlaygroundOptions(
        folder / "playground", metasrvs=2, datanodes=2, frontends=3, metasrv_flags=plan.flags
    )
    limits = httpx.Limits(max_keepalive_connections=0)  # none is closed under a request
    async with (
        Playground(settings) as playground,
        httpx.AsyncClient(trust_env=False, limits=limits, timeout=60) as http,
    ):
        rig = Rig(playground, http)
        await rig.until(rig.all_pass_on)
        async with rig.client() as db:
            await db.tables.create(spec())
        changes = Changes(rig, plan.fills)
        for name in ("by_word", "for_a_while"):
            await changes.create_index(name, "word")
        urls = [f"{url}/v1/tables/main/public/t" for url in playground.frontend_urls.values()]
        writers = [RowWriter(url, FIRST * n, http) for n, url in enumerate(urls, start=1)]
        backups = BackupTaker(rig)
        async with kept_running(rig) as ended:
            async with asyncio.TaskGroup() as tasks:
                for writer in writers:
                    tasks.create_task(writer.run())
                await rig.clock.sleep_ms(plan.alone_ms)
                alone = [len(writer.taken_ms) for writer in writers]
                tasks.create_task(changes.run())
                tasks.create_task(backups.run())
                await _blows(rig, plan, changes, writers)
                changes.is_over = backups.is_over = True
                for writer in writers:
                    writer.is_over = True
            await changes.drop_index("for_a_while")
        await rig.converged(CONVERGE_S)
        reader = Reader(rig, urls[0], rig.urls[0] + TABLE)
        rows = await reader.rows("/scan")
        wrong = [
            *wrong_of_rows(rows, writers),
            *wrong_of_columns(rows, changes.kept, writers),
            *[text async for text in wrong_of_indexes(reader, rows, changes.indexes)],
            *(await rig.agreement()).wrong,
            *await rig.check(),
            *(await wrong_of_data(rig) if plan.fills else ()),
            *ended,
            *changes.faults,
            *backups.faults,
            *(fault for writer in writers for fault in writer.faults),
        ]
    numbers = {
        "changes": changes.done,
        "rows": len(rows),
        "backups": backups.sound,
        **taken(writers, alone),
        **{f"writer {n}": str(writer) for n, writer in enumerate(writers, start=1)},
    }
    made = must(
        columns_were_kept=bool(changes.kept),
        rows_were_written=bool(rows),
        backups_were_made=bool(backups.sound),
    )
    return Seen(numbers, (*made, *wrong))


async def wrong_of_data(rig: Rig) -> list[str]:
    """Returns the rows and entries that do not fit the table, found by Spark (`POST T/check`)."""
    async with rig.client() as db:
        checked = await db.tables.check("main.public.t", wait_s=CONVERGE_S)
    looked = must(rows_and_entries_were_read=bool(checked.rows and checked.entries))
    return [*looked, *(f"{rule}: {total}" for rule, total in checked.totals.items() if total)]


def taken(writers: Sequence[RowWriter], alone: Sequence[int]) -> dict[str, str]:
    """p50 and p99 of statements; of each writer the first *alone* were when nothing changed."""
    pairs = tuple(zip(writers, alone, strict=True))
    return {
        "writes before": _percentiles([ms for one, n in pairs for ms in one.taken_ms[:n]]),
        "writes during": _percentiles([ms for one, n in pairs for ms in one.taken_ms[n:]]),
    }


def _percentiles(taken_ms: Sequence[int]) -> str:
    if len(taken_ms) < 2:
        return f"{len(taken_ms)} statements"
    cuts = quantiles(taken_ms, n=100, method="inclusive")
    return f"{len(taken_ms)} statements, p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms"


async def _blows(rig: Rig, plan: Plan, changes: Changes, writers: Sequence[RowWriter]) -> None:
    """After each line, and before the first, every writer is told `ok` of something new."""
    for line in ((), *plan.blows):
        async with asyncio.TaskGroup() as tasks:
            for blow in line:
                tasks.create_task(strike(rig, changes, blow))
        before = [writer.told["insert ok"] for writer in writers]

        async def all_wrote(before: list[int] = before) -> bool:
            pairs = zip(writers, before, strict=True)
            return all(writer.told["insert ok"] > told for writer, told in pairs)

        await rig.until(all_wrote, CONVERGE_S)
