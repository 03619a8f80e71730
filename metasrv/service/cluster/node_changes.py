"""Changes of a node's record: cordon, labels, rebind and release. Durable when answered."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from keys.model.cluster import Cordon, NodeRecord
from metasrv.leadership.term import Term
from metasrv.nodes.registry import relabelled
from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.cluster import (
    CordonRequest,
    NodeBody,
    NodePatch,
    RebindRequest,
    ReleaseRequest,
)

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


async def alter(
    state: ServerState, context: RequestContext, node_id: str, patch: NodePatch
) -> NodeBody:
    """Changes labels of a node. Regions that it leads stay, whatever filter they leave.

    Raises NotFound; Refused for labels that no node may have.
    """

    async def write(term: Term) -> None:
        await term.nodes.set_labels(node_id, patch.labels)

    def labelled(node: NodeRecord) -> NodeRecord:
        return relabelled(node, patch.labels)

    return await _change(state, context, node_id, labelled, write)


async def rebind(
    state: ServerState, context: RequestContext, node_id: str, request: RebindRequest
) -> NodeBody:
    """Lets another token speak for a node. The process is refused until it shows the new token.

    Raises NotFound.
    """

    async def write(term: Term) -> None:
        await term.nodes.set_principal(node_id, request.principal)

    return await _change(state, context, node_id, _with(principal=request.principal), write)


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

    return await _change(state, context, node_id, _with(returned=None), write)


def new_cordon(state: ServerState, context: RequestContext, reason: str) -> Cordon:
    return Cordon(reason=reason, by=context.principal, at_ms=state.clock.wall_ms())


async def _set_cordon(
    state: ServerState, context: RequestContext, node_id: str, cordon: Cordon | None
) -> NodeBody:
    async def write(term: Term) -> None:
        await term.nodes.set_cordon(node_id, cordon)

    return await _change(state, context, node_id, _with(cordon=cordon), write)


def _with(**update: object) -> Callable[[NodeRecord], NodeRecord]:
    return lambda node: node.model_copy(update=update)


async def _change(
    state: ServerState,
    context: RequestContext,
    node_id: str,
    change: Callable[[NodeRecord], NodeRecord],
    write: Callable[[Term], Awaitable[None]],
) -> NodeBody:
    """Returns the node as *write* has left it; in a dry run as *change* would leave it."""
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        term.nodes.entry(node_id)
        if not context.dry_run:
            await write(term)
        status = term.nodes.node(node_id)
        if context.dry_run:
            status = replace(status, node=change(status.node))
        return node_body(status, state.follower.catalog)
