"""Moves of copies, started and observed by tests."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from keys.model.records import ClientRequirements, ProcedureHistory
from procedures.engine.submit import SubmitRequest
from procedures.kinds.moves.copy_move import MoveCopy
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.machine import Kind
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.kinds.copies.copy_lives import Given, regions, roles
from tests.procedures.kinds.runs import begun
from tests.sim.loop import SimLoop, run

MOVES = MOVE_COPY.name


async def submitted(cluster: Cluster, state: MoveCopy) -> str:
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={})
    request = SubmitRequest(cluster.ids.procedure_id(), client, "")
    await cluster.leader.manager.submit(cluster.kinds[MOVES], state, request)
    return request.procedure


async def ended(cluster: Cluster, procedure: str) -> ProcedureHistory:
    history = await cluster.leader.manager.wait(procedure, deadline_ms=7_200_000)
    assert isinstance(history, ProcedureHistory)
    return history


async def waits_for(cluster: Cluster, procedure: str, kind: str) -> str:
    """The holder of the first wait of that kind."""
    while True:
        entry = cluster.leader.manager.entry(procedure)
        assert entry is not None, "it is over"
        for wait in entry.live.waits:
            if wait.kind == kind:
                return wait.holder
        await cluster.clock.sleep_ms(100)


def nodes_of(cluster: Cluster, region: int) -> list[str]:
    """The leader, then the copies beside it."""
    return [regions(cluster)[region]["leader"], *(node for node, _ in roles(cluster, region))]


def lived(
    main: Callable[[Cluster], Awaitable[None]],
    given: Given = with_copied_table,
    kinds: Mapping[str, Kind[Any]] | None = None,
) -> None:
    async def live(loop: SimLoop) -> None:
        await main(await begun(loop, given, kinds or {}))

    run(live, 1)
