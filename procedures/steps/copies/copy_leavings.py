"""Deletion of the folder of one copy that the route names no more, at its own node."""

from procedures.context import Context
from procedures.steps.copies.copy_orders import (
    CopyTarget,
    answered_by_all_that_do,
    close_copy,
    delete_copies,
    discard_copy,
    living,
    order_copies,
)


async def delete_left(context: Context, target: CopyTarget) -> list[str]:
    """Has the node close the copy and delete its folder. Returns the folder if it stays: the node
    is gone, answers no orders or will not delete it, or the leader borrows it; then the failover
    that did so deletes it. A node that has another copy of the region by now keeps that open.
    Idempotent; raises Unavailable if the node did not do it."""
    if target.root in {*target.region.roots, *target.region.borrows}:
        return [target.root]
    if not living([target], context.answering_nodes()):
        return [target.root]
    if target.node not in target.region.nodes:
        decided = answered_by_all_that_do(context, [target])
        (await order_copies(context, [target], close_copy, decided)).must_all_succeed()
    return await delete_copies(context, [target], discard_copy)
