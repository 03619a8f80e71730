"""POST /v1/nodes/{node}/rebind: another token speaks for a node from now on."""

from dataclasses import replace

from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.cluster import NodeBody, RebindRequest


async def rebind(
    state: ServerState, context: RequestContext, node_id: str, request: RebindRequest
) -> NodeBody:
    """Durable when it is answered. The process is refused until it shows the new token.

    Raises NotFound.
    """
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        term.nodes.entry(node_id)
        if context.dry_run:
            status = term.nodes.node(node_id)
            would_be = status.node.model_copy(update={"principal": request.principal})
            return node_body(replace(status, node=would_be), state.follower.catalog)
        await term.nodes.set_principal(node_id, request.principal)
        return node_body(term.nodes.node(node_id), state.follower.catalog)
