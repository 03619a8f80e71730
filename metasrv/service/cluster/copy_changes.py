"""POST /internal/v1/nodes/{node_id}/copies: leaders have copies join and leave their sets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from keys.model.records import ClientRequirements, ProcedureHistory
from metasrv.leadership.term import Term
from metasrv.nodes.copy_changes import compared, is_same
from metasrv.service.cluster.internal import wrong_node
from metasrv.service.named import find_region, is_node_id, is_region_id, no_node_id, no_region_id
from metasrv.service.requests.submit_ddl import only_the_leader, stored, until_over
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Conflict, MetaError, NotLeader
from metasrv_base.wire.node.copy_changes import (
    CopyChange,
    CopyChangeResult,
    CopyChangesAnswer,
    CopyChangesRequest,
)
from metasrv_base.wire.node.orders import OrderError
from metasrv_base.wire.problem.problems import FieldError, refuse
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.change_copies import (
    CHANGE_COPIES,
    ChangeCopies,
    is_eligible,
    with_role,
)
from procedures.locking.locks import region_key
from procedures.quorum import min_in_sync

AT_ONCE = 16  # changes of one request that are submitted at the same time
WAIT_MS = 2_000
"""The time for which an answer waits for the ends of its procedures. A change is two commits, and
the leader learns of a later end by its heartbeats."""


async def change_copies(
    state: ServerState, node_id: str, request: CopyChangesRequest, by: str | None
) -> CopyChangesAnswer:
    """Durable when it is answered; each change has its own result.

    Raises NotLeader with the leader's URL where another server leads, and as
    `NodeLiveness.sender_of`.
    """
    term = await state.leading()
    refuse(tuple(_wrong(node_id, request)))
    term.nodes.sender_of(request, by)
    requests = _Requests(state, term, node_id, state.clock.mono_ms() + WAIT_MS)
    with only_the_leader():
        results = await fan_out(
            [partial(requests.result, change) for change in request.changes], at_once=AT_ONCE
        )
    return CopyChangesAnswer(results=results)


@dataclass(frozen=True, slots=True)
class _Requests:
    """The changes that one node asks for."""

    state: ServerState
    term: Term
    node_id: str
    until_ms: int
    """Monotonic."""

    async def result(self, change: CopyChange) -> CopyChangeResult:
        """Raises NotLeader."""
        region_id = change.region_id
        try:
            return await self._changed(change)
        except NotLeader:
            raise
        except MetaError as error:
            problem = OrderError(code=error.code, facts=dict(error.facts))
            return CopyChangeResult(region_id=region_id, error=problem)

    async def _changed(self, change: CopyChange) -> CopyChangeResult:
        needed = self._judged(change)
        if isinstance(needed, CopyChangeResult):
            return needed
        procedure = await self._submitted(needed)
        left_ms = max(0, self.until_ms - self.state.clock.mono_ms())
        entry = await until_over(self.state, self.term, procedure, left_ms)
        under_way = CopyChangeResult(region_id=change.region_id, procedure_id=procedure)
        return _ended(under_way, entry) if isinstance(entry, ProcedureHistory) else under_way

    def _judged(self, change: CopyChange) -> ChangeCopies | CopyChangeResult:
        """The procedure that is needed; or the result, where the applied catalog has it. A catalog
        that is behind the leader's word says nothing: the procedure reads the store.

        Raises as `with_role`, and NotFound for a region of no living table that no move has woken.
        """
        table, region = find_region(self.state.follower.catalog, change.region_id, awake=True)
        state = ChangeCopies(
            table_id=table.info.table_id,
            name=table.info.full_name,
            region_id=change.region_id,
            change=change.change,
            node=change.node,
            root=change.root,
            epoch=change.epoch,
            version=change.copies_version,
            eligible=change.eligible,
            reason=change.reason,
        )
        if (region.epoch, region.copies_version) < (change.epoch, change.copies_version):
            return state
        if region.leader != self.node_id:
            facts = {"epoch": change.epoch, "current_epoch": region.epoch}
            raise Conflict("stale-epoch", region_id=change.region_id, **facts)
        if with_role(region, state, min_in_sync(table.info)) is not region:
            return state
        version, marked = region.copies_version, is_eligible(region, change.root)
        return CopyChangeResult(region_id=change.region_id, copies_version=version, eligible=marked)

    async def _submitted(self, change: ChangeCopies) -> str:
        """The procedure of the change: the one under way, if it was asked for before.

        Raises Conflict("object-locked") while another change of the same version is under way: at
        most one of them is done. Raises as `stored`.
        """
        await self.term.copy_changes.settled(change)
        under_way = _under_way(self.term, change)
        if under_way is not None:
            return under_way
        request = SubmitRequest(
            self.state.ids.procedure_id(),
            ClientRequirements(
                submitted_by=self.node_id, request_id="", statement=_statement(change)
            ),
            fingerprint="",
        )
        with self.term.copy_changes.submitting(change):
            submitted = await stored(self.state, self.term, CHANGE_COPIES, change, request)
        return submitted.procedure


def _under_way(term: Term, change: ChangeCopies) -> str | None:
    for procedure, entry in term.manager.living():
        record = entry.held.record
        is_of_region = record.state.get("region_id") == change.region_id
        if record.kind != CHANGE_COPIES.name or not is_of_region:
            continue
        another = ChangeCopies.model_validate(record.state)
        if is_same(change, another):
            return procedure
        if compared(change) == compared(another):
            resource = region_key(change.region_id)
            raise Conflict("object-locked", resource=resource, holder=procedure)
    return None


def _statement(change: ChangeCopies) -> dict[str, object]:
    return {"automatic": "change_copies", "reason": change.reason}


def _ended(under_way: CopyChangeResult, history: ProcedureHistory) -> CopyChangeResult:
    error = history.last.error
    if error is not None:
        problem = OrderError(code=error.code, facts=error.facts)
        return under_way.model_copy(update={"error": problem})
    result = history.result
    assert result is not None
    update = {
        "copies_version": result["copies_version"],
        "eligible": result.get("eligible", False),
    }
    return under_way.model_copy(update=update)


def _wrong(node_id: str, request: CopyChangesRequest) -> Iterator[FieldError]:
    yield from wrong_node(node_id, request.node_id)
    for position, change in enumerate(request.changes):
        here = f"/changes/{position}"
        if not is_region_id(change.region_id):
            yield no_region_id(f"{here}/region_id")
        if not is_node_id(change.node):
            yield no_node_id(f"{here}/node")
