"""Deletion of the folder of one copy that the route names no more, at its own node."""

from procedures.context import Context
from procedures.steps.copies.copy_orders import (
    CopyTarget,
    close_copy,
    delete_copies,
    discard_copy,
    living,
    order_copies,
)


async def delete_left(context: Context, target: CopyTarget) -> list[str]:
    """Has the node close the copy and delete its folder; returns the folder if it stays, since the
    node is gone or will not delete it, or since the leader borrows it: then the failover that did
    so deletes it. A node that has another copy of the region by now keeps that open. Idempotent;
    raises Unavailable if the node did not do it."""
    if target.root in {*target.region.roots, *target.region.borrows}:
        return [target.root]
    if target.node not in target.region.nodes:
        answers = await order_copies(context, living([target], context.alive_nodes()), close_copy)
        answers.must_all_succeed()
    return await delete_copies(context, [target], discard_copy)
