"""An index that is made of rows in three regions, held at one place of its way."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from keys.commit.txn import snapshot
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.model.tables import TableInfo, TableInfoKey
from keys.store.kv import Compare
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    ValidateJob,
    ValidateResult,
)
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.registry import KINDS
from procedures.machine import ProcedureState
from procedures.ports import Progress
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.datanodes.plane import FakeJobs
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE, End
from tests.procedures.harness.online import INDEXES
from tests.procedures.harness.scenarios import MOVED, with_table
from tests.procedures.harness.tables import NODES
from tests.sim.loop import SimLoop, run

HOLDER = "fe-1"
WRITE_ONLY = 3
"""The schema version in which a new index is."""
WAIT_MS = 600_000
PLACES = ("mark", "fill", "ingest", "close")
"""Where it can be held: before its marks are open, while its jobs read, before regions take what
they made, before the marks are closed."""


@dataclass
class HeldJobs(FakeJobs):
    """Jobs that go on when they may."""

    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    began: int = 0
    checks_free: int = 0
    checked: list[CheckJob] = field(default_factory=list)
    fails: MetaError | None = None
    """The error with which every filling ends while it is set."""
    rates: dict[str, int | None] = field(default_factory=dict)
    """The rate last given to each filling, in rows per second, by job id."""

    reading: dict[str, Progress] = field(default_factory=dict)
    """Fillings that are held, by job id."""

    def read(self, rows: int) -> None:
        """Every filling that is held has read *rows* rows so far."""
        for progress in self.reading.values():
            progress(rows, rows, "rows")

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        self.began += 1
        self.rates[job.job_id] = job.rows_per_s
        if self.fails is not None:
            raise self.fails
        progress(1, 2, "rows")
        self.reading[job.job_id] = progress
        await self.may_go_on.wait()
        del self.reading[job.job_id]
        return await super().backfill(job, progress=progress)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        self.rates[job_id] = rows_per_s
        await super().throttle(job_id, rows_per_s)

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        self.began += 1
        await self.may_go_on.wait()
        return await super().validate(job, progress=progress)

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        """Checks rows; every check beyond the first `checks_free` is held."""
        self.began += 1
        self.checked.append(job)
        if self.began > self.checks_free:
            await self.may_go_on.wait()
        return await super().check(job, progress=progress)


@dataclass
class Filling:
    """A procedure that fills an index, and who steers it."""

    cluster: Cluster
    fence: Compare
    jobs: HeldJobs
    procedure: str = ""

    async def submit(self, kind: str = "create_index", state: ProcedureState = INDEXES) -> None:
        request = SubmitRequest(self.cluster.ids.procedure_id(), _client(), "b")
        made = await self.cluster.leader.manager.submit(KINDS[kind], state, request)
        self.procedure = made.procedure

    async def hold(self, place: str) -> None:
        """Submits, and returns when it stands there."""
        self.cluster.holders.uses(HOLDER, TABLE, WRITE_ONLY - 1)
        await self.submit()
        await self.settle()
        if place != "fill":
            self.refuse("schema" if place != "ingest" else "ingest")
        if place == "close":
            self.allow()
        self.cluster.holders.lets_go(HOLDER, TABLE)
        await self.settle()
        if place == "close":
            self.refuse("schema")
        if place in ("ingest", "close"):
            self.jobs.may_go_on.set()
            await self.settle()

    async def go_on(self) -> ProcedureHistory:
        self.allow()
        self.jobs.may_go_on.set()
        found = await self.cluster.leader.manager.wait(self.procedure, deadline_ms=WAIT_MS)
        assert isinstance(found, ProcedureHistory), found.state
        return found

    async def control(self, control: Control) -> ActiveProcedure | ProcedureHistory:
        command = Command(control, by="ops")
        return await self.cluster.leader.manager.control(self.procedure, command)

    async def throttle(self, rows_per_s: int | None) -> None:
        command = Command(Control.THROTTLE, by="ops", rows_per_s=rows_per_s)
        await self.cluster.leader.manager.control(self.procedure, command)

    async def fail_over(self, moved: FailoverTable = MOVED) -> None:
        """dn-1 dies, and its regions go to others."""
        self.cluster.plane.nodes["dn-1"].die()
        manager = self.cluster.leader.manager
        request = SubmitRequest(self.cluster.ids.procedure_id(), _client(), "f")
        started = await manager.submit(FAILOVER_TABLE, moved, request)
        found = await manager.wait(started.procedure, deadline_ms=WAIT_MS)
        assert isinstance(found, ProcedureHistory), found.state

    def entry(self) -> ActiveProcedure:
        found = self.cluster.leader.manager.entry(self.procedure)
        assert found is not None
        return found

    async def info(self) -> TableInfo:
        key = TableInfoKey(TABLE)
        return (await snapshot(self.cluster.kv, key, deadline_ms=DEADLINE_MS)).must(key)

    async def settle(self) -> None:
        await self.cluster.clock.sleep_ms(300)

    def judge(self, outcome: ProcedureOutcome, check: Callable[[End], list[str]]) -> list[str]:
        agreement = history_of(self.cluster.kv._store.log_from(1))
        wrong = [*agreement.wrong, *self.cluster.violations, *self.cluster.plane.violations]
        return wrong + check(End(self.cluster, agreement, outcome))

    def refuse(self, op: str) -> None:
        for node in NODES:
            self.cluster.plane.nodes[node].refuses[op] = Unavailable(what="test")

    def allow(self) -> None:
        for node in NODES:
            self.cluster.plane.nodes[node].refuses.clear()


def filling(
    scenario: Callable[[Filling], Awaitable[None]],
    given: Callable[[Cluster, Compare], Awaitable[None]] = with_table,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        jobs = cluster.jobs = HeldJobs(cluster.plane)
        fence = await cluster.bootstrap()
        await given(cluster, fence)
        await cluster.started()
        await scenario(Filling(cluster, fence, jobs))

    run(main, 1)


def _client() -> ClientRequirements:
    return ClientRequirements(submitted_by="anna", request_id="r", statement={}, idempotency=None)
