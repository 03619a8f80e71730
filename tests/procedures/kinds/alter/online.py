"""Alters of a table whose versions a holder acknowledges, and what is true when they are over."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keys.commit.txn import snapshot
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.model.tables import TableInfo, TableInfoKey
from keys.store.kv import Compare
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_operations import AddColumnOperation, Operation
from procedures.kinds.alter.alter_table import ALTER_TABLE
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import OTHER, TABLE, End
from tests.procedures.harness.online import (
    ALTERS,
    with_wide_table,
)
from tests.procedures.harness.tables import put_table, table_info
from tests.sim.loop import SimLoop, run

HOLDER = "fe-1"


WAIT_MS = 600_000


REQUIRED = AddColumnOperation(name="seats", type="int32", nullable=False, default=100)


@dataclass
class Change:
    """A table that is altered, and who steers it."""

    cluster: Cluster
    fence: Compare
    procedure: str = ""

    async def submit(
        self, *operations: Operation, table_id: int = TABLE, name: str = "t"
    ) -> "Change":
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=None
        )
        update = {"operations": operations, "table_id": table_id, "name": name}
        request = SubmitRequest(self.cluster.ids.procedure_id(), client, "b")
        state = ALTERS.model_copy(update=update)
        manager = self.cluster.leader.manager
        made = await manager.submit(ALTER_TABLE, state, request)
        return Change(self.cluster, self.fence, made.procedure)

    async def control(self, control: Control) -> ActiveProcedure | ProcedureHistory:
        manager = self.cluster.leader.manager
        return await manager.control(self.procedure, Command(control, by="ops"))

    async def end(self) -> ProcedureHistory:
        manager = self.cluster.leader.manager
        found = await manager.wait(self.procedure, deadline_ms=WAIT_MS)
        assert isinstance(found, ProcedureHistory), found.state
        return found

    def entry(self) -> ActiveProcedure:
        found = self.cluster.leader.manager.entry(self.procedure)
        assert found is not None
        return found

    async def info(self, table_id: int = TABLE) -> TableInfo:
        key = TableInfoKey(table_id)
        return (await snapshot(self.cluster.kv, key, deadline_ms=DEADLINE_MS)).must(key)

    async def settle(self) -> None:
        await self.cluster.clock.sleep_ms(50)

    def judge(self, outcome: ProcedureOutcome, check: Callable[[End], list[str]]) -> list[str]:
        agreement = history_of(self.cluster.kv._store.log_from(1))
        wrong = [*agreement.wrong, *self.cluster.violations, *self.cluster.plane.violations]
        return wrong + check(End(self.cluster, agreement, outcome))


def online(scenario: Callable[[Change], Awaitable[None]]) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_wide_table(cluster, fence)
        await put_table(cluster, fence, table_info(OTHER, "u", 1), ("dn-1",))
        await cluster.started()
        await scenario(Change(cluster, fence))

    run(main, 1)
