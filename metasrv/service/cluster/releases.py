"""POST /v1/nodes/{node}/release: what a returned node holds leaves its quarantine."""

from dataclasses import replace

import structlog

from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.cluster import NodeBody, ReleaseRequest

log = structlog.get_logger()


async def release(
    state: ServerState, context: RequestContext, node_id: str, request: ReleaseRequest
) -> NodeBody:
    """Durable when it is answered. The node is then like any other: what it has open of tables that
    nobody knows is dropped, with its files. Changes nothing of a node that is not in quarantine.

    Raises NotFound.
    """
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        node = term.nodes.entry(node_id).node
        if context.dry_run:
            would_be = node.model_copy(update={"returned": None})
            status = replace(term.nodes.node(node_id), node=would_be)
            return node_body(status, state.follower.catalog)
        if node.returned is not None:
            await term.nodes.release(node_id)
            folders = node.returned.folder_count
            log.warning(
                "node_released",
                node=node_id,
                by=context.principal,
                reason=request.reason,
                folders=folders,
            )
        return node_body(term.nodes.node(node_id), state.follower.catalog)
