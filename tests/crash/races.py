"""A change that another one overtakes between its read and its commit."""

from dataclasses import replace

from keys.model.records import ClientRequirements, ProcedureHistory
from procedures.context import Context
from procedures.engine.submit import SubmitRequest
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.machine import Outcome, Step
from tests.crash.enumeration import Harness
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_table
from tests.procedures.kinds.runs import move_route
from tests.sim.loop import SimLoop, run


def race(harness: Harness, *, moves: bool = True) -> list[str]:
    """A drop whose route moves under it: what is wrong with the keys at any revision."""
    return run(lambda loop: _race(loop, harness, moves), 1)


async def _race(loop: SimLoop, harness: Harness, moves: bool) -> list[str]:
    moved: list[Cluster] = []

    async def remove(state: DropTable, at: Context) -> Outcome[DropTable]:
        outcome = await DROP_TABLE.steps["remove"].act(state, at)
        if moves and not moved:
            moved.append(cluster)
            await move_route(cluster)
        return outcome

    row = Step(remove, to=frozenset({"close"}))
    slow = replace(DROP_TABLE, steps={**DROP_TABLE.steps, "remove": row})
    cluster = Cluster(loop, {**KINDS, "drop_table": slow}, alter=harness.alter)
    await with_table(cluster, await cluster.bootstrap())
    await cluster.started()
    state = DropTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={}, table_id=TABLE)
    request = SubmitRequest(cluster.ids.procedure_id(), client, "")
    manager = cluster.leader.manager
    await manager.submit(slow, state, request)
    history = await manager.wait(request.procedure, deadline_ms=600_000)
    ended = isinstance(history, ProcedureHistory)
    wrong = history_of(cluster.kv._store.log_from(1)).wrong
    return wrong if ended else [*wrong, "never ends"]
