"""Failovers of nodes and tables, started and observed by tests."""

from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from procedures.machine import ProcedureState
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import region_ids


def children_of(cluster: Cluster, parent: str) -> dict[int, str]:
    """Returns the living and the ended children of a procedure, by table."""
    agreement = history_of(cluster.kv._store.log_from(1))
    over = agreement.family("__procedure_history")
    records = {where[0]: one["last"] for where, one in over.items()}
    records |= {where[0]: one for where, one in agreement.family("__procedure").items()}
    mine = {name: one for name, one in records.items() if one["parent"] == parent}
    return {int(one["resource"]["id"]): name for name, one in mine.items()}


OPERATOR = ClientRequirements(submitted_by="ops", request_id="r-9", statement={})


async def fail_over(cluster: Cluster, victim: str) -> list[str]:
    """Submits the failover that detection would submit."""
    kind, state = KINDS["failover_node"], FailoverNode(node=victim, reason="test")
    request = SubmitRequest(cluster.ids.procedure_id(), OPERATOR, "")
    await cluster.ask(cluster.leader, lambda manager: manager.submit(kind, state, request))
    return [] if await cluster.quiet() else [f"failover never ends: {cluster.living()}"]


CLIENT = ClientRequirements(submitted_by="ops", request_id="r", statement={})


FIRST = region_ids(TABLE, 1)[0]


ROOT = f"/disks/dn-1/regions/{FIRST}-1"


async def start(cluster: Cluster, kind: str, state: ProcedureState) -> str:
    request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
    await cluster.leader.manager.submit(KINDS[kind], state, request)
    return request.procedure


async def outcome(cluster: Cluster, procedure: str) -> ProcedureOutcome | None:
    """None: it is not over."""
    known = await cluster.leader.manager.find(procedure)
    return known.outcome if isinstance(known, ProcedureHistory) else None
