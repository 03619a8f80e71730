"""Changes of a node's record: cordon, uncordon, rebind and release. Durable when answered."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import structlog

from keys.model.cluster import Cordon
from metasrv.leadership.term import Term
from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.cluster import CordonRequest, NodeBody, RebindRequest, ReleaseRequest

log = structlog.get_logger()


async def cordon(
    state: ServerState, context: RequestContext, node_id: str, request: CordonRequest
) -> NodeBody:
    """Keeps new regions away from a node. Again: the last reason stands. Raises NotFound."""
    return await _set_cordon(state, context, node_id, new_cordon(state, context, request.reason))


async def uncordon(state: ServerState, context: RequestContext, node_id: str) -> NodeBody:
    """Lets a node take new regions again; those that left it stay where they are. Raises
    NotFound."""
    return await _set_cordon(state, context, node_id, None)


async def rebind(
    state: ServerState, context: RequestContext, node_id: str, request: RebindRequest
) -> NodeBody:
    """Lets another token speak for a node. The process is refused until it shows the new token.

    Raises NotFound.
    """

    async def write(term: Term) -> None:
        await term.nodes.set_principal(node_id, request.principal)

    return await _change(state, context, node_id, {"principal": request.principal}, write)


async def release(
    state: ServerState, context: RequestContext, node_id: str, request: ReleaseRequest
) -> NodeBody:
    """Ends the quarantine of a node that was removed and has returned. The node is then like any
    other: what it has open of tables that nobody knows is dropped, with its files. Changes nothing
    of a node that is not in quarantine.

    Raises NotFound.
    """

    async def write(term: Term) -> None:
        returned = term.nodes.entry(node_id).node.returned
        if returned is None:
            return
        await term.nodes.release(node_id)
        log.warning(
            "node_released",
            node=node_id,
            by=context.principal,
            reason=request.reason,
            folders=returned.folder_count,
        )

    return await _change(state, context, node_id, {"returned": None}, write)


def new_cordon(state: ServerState, context: RequestContext, reason: str) -> Cordon:
    return Cordon(reason=reason, by=context.principal, at_ms=state.clock.wall_ms())


async def _set_cordon(
    state: ServerState, context: RequestContext, node_id: str, cordon: Cordon | None
) -> NodeBody:
    async def write(term: Term) -> None:
        await term.nodes.set_cordon(node_id, cordon)

    return await _change(state, context, node_id, {"cordon": cordon}, write)


async def _change(
    state: ServerState,
    context: RequestContext,
    node_id: str,
    update: Mapping[str, object],
    write: Callable[[Term], Awaitable[None]],
) -> NodeBody:
    """Returns the node as *write* has left it; in a dry run as *update* would leave it."""
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        term.nodes.entry(node_id)
        if not context.dry_run:
            await write(term)
        status = term.nodes.node(node_id)
        if context.dry_run:
            status = replace(status, node=status.node.model_copy(update=update))
        return node_body(status, state.follower.catalog)
