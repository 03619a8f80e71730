"""A calm cluster, and a table of which one row in each region is written without end.

A job goes on only when that row of the region it reads was written again: before it reads, and once
more before anybody takes what it made. So in no round does a region stand still.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.reads import PageOf
from keys.model.tables import TableInfo
from metasrv.sdk.control.operations import Settings
from metasrv_base.errors import MetaError
from metasrv_base.ids import RegionId, number_of
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import BackfillJob, BackfillResult, ValidateJob, ValidateResult
from procedures.ports import Progress
from tests.sim.checks.schema_invariants import index_faults
from tests.sim.clients.client import Session
from tests.sim.clients.frontend_line import Line
from tests.sim.cluster import servers
from tests.sim.cluster.disks import Disks
from tests.sim.cluster.jobs import SimJobs
from tests.sim.cluster.message_fates import Weather
from tests.sim.cluster.world import World, quiet, uncollected
from tests.sim.length import Life
from tests.sim.loop import SimLoop, run
from tests.sim.planted.mistakes import Bugs

REGIONS = 3
ROWS = 5
"""Rows of each region; the first of them is hot."""
NAME = ("main", "public", "hot")
SPEC: Mapping[str, Any] = {
    "name": "hot",
    "columns": [
        {"name": "part", "type": "int64", "nullable": False},
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "code", "type": "string"},
        {"name": "size", "type": "int64"},
    ],
    "primary_key": ["part", "id"],
    "partition": {"by": "range", "columns": ["part"], "bounds": [[n] for n in range(1, REGIONS)]},
}
LOOK_MS = 5
T = TypeVar("T")


@dataclass
class HotTable:
    """The table, who writes it, and what its jobs did."""

    world: World
    line: Line
    hot: tuple[int, ...] = tuple(range(REGIONS))
    """Regions that have a hot row."""
    times: list[int] = field(default_factory=lambda: [0] * REGIONS)
    """The number of writes of each region's hot row."""
    read: list[int] = field(default_factory=list)
    """Regions that jobs have read, in that order."""
    refused: list[MetaError] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.line.session

    async def make(self) -> None:
        """With its rows; each round of a reorg is to read one region."""
        await Settings(self.session.service).put("reorg_regions_max", 1)
        await self.session.tables.create(SPEC)
        rows = [row_of(part, id, 0) for part in range(REGIONS) for id in range(ROWS)]
        await self._write(Op.INSERT, rows)

    async def heat(self) -> None:
        """Without end. Every other time the row has what it had at first."""
        while not self.refused:
            for part in self.hot:
                times = self.times[part] + 1
                try:
                    await self._write(Op.UPDATE, [row_of(part, 0, times)])
                except MetaError as error:
                    self.refused.append(error)
                self.times[part] = times

    async def beside_writes(self, snapshot: Snapshot, work: Callable[[], Awaitable[T]]) -> T:
        part = number_of(RegionId(int(snapshot.region_id)))
        self.read.append(part)
        await self._written_again(part)
        found = await work()
        await self._written_again(part)
        return found

    async def change(self, path: str, body: Mapping[str, object]) -> ProcedureBody:
        """As it ended; rows are hot while it runs."""
        where = f"/v1/catalogs/main/schemas/public/tables/hot/{path}"
        heating = self.world.loop.spawn("heater", self.heat())
        with suppress(MetaError):
            await self.session.service.change("POST", where, body)
        heating.cancel()
        (last,) = await self.session.procedures.list(limit=1)
        return await self.session.procedures.get(last.id)

    async def rows(self) -> list[dict[str, Any]]:
        async def act(service: FrontendService) -> PageOf:
            return await service.reads.by_keys(NAME, lambda _: keys, keys=len(keys))

        keys = [(part, id) for part in range(REGIONS) for id in range(ROWS)]
        found: list[dict[str, Any]] = (await self.line.ask(act)).rows.to_pylist()
        return found

    @property
    def info(self) -> TableInfo:
        (info,) = self.world.shapes._tables().values()
        return info

    def faults(self) -> Iterator[str]:
        """Entries that are not exactly those of the rows."""
        for node in self.world.nodes:
            assert node.service is not None, "it is up"
            for slot in node.service.regions:
                assert slot.owner is not None, "it is open"
                yield from index_faults(slot.owner.region, self.info)

    async def _write(self, op: Op, rows: list[dict[str, Any]]) -> None:
        statement = self.session.key().ljust(16, "-")

        async def act(service: FrontendService) -> object:
            return await service.writes.rows(NAME, op, rows, statement)

        await self.line.ask(act)

    async def _written_again(self, part: int) -> None:
        """By a statement that began behind this call."""
        until = self.times[part] + 2
        while part in self.hot and self.times[part] < until and not self.refused:
            await self.world.sleep_ms(LOOK_MS)


def row_of(part: int, id: int, times: int) -> dict[str, Any]:
    code = f"{part}-{id}" if times % 2 == 0 else f"{part}-{id}-{times}"
    return {"part": part, "id": id, "code": code, "size": times}


@dataclass
class HotJobs(SimJobs):
    table: HotTable | None = None

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        assert self.table is not None, "made with one"
        work = super().backfill
        return await self.table.beside_writes(job.snapshot, lambda: work(job, progress=progress))

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        assert self.table is not None, "made with one"
        work = super().validate
        return await self.table.beside_writes(job.snapshot, lambda: work(job, progress=progress))


def hot(scenario: Callable[[HotTable], Awaitable[None]]) -> None:
    tables: list[HotTable] = []

    def jobs(disks: Disks, loop: SimLoop, node: str, weather: Weather) -> HotJobs:
        return HotJobs(disks, loop, node, weather, table=tables[0])

    async def main(loop: SimLoop) -> None:
        world = World(loop, Life(1), Bugs())
        session = world.session("client")
        tables.append(HotTable(world, Line(session, world.frontends[:1])))
        world.servers[0].start()
        world.frontends[0].start()
        for node in world.nodes:
            node.start()
        while not is_ready(world):
            await world.sleep_ms(LOOK_MS)
        await tables[0].make()
        await scenario(tables[0])

    wrong: list[str] = []

    def tell(event: dict[str, Any], raised: str) -> None:
        wrong.append(f"{event} {raised}")

    with quiet(tell), Bugs(patches=((servers, "SimJobs", jobs),)).planted(), uncollected():
        run(main, 1)


def is_ready(world: World) -> bool:
    """The server leads and has heard of every node, and the frontend serves."""
    state, service = world.servers[0].state, world.frontends[0].service
    term = state.term if state is not None and state.leads else None
    if service is None or term is None or len(term.nodes.nodes()) < len(world.nodes):
        return False
    with suppress(MetaError):
        service.statements.holder.check()
        return True
    return False
