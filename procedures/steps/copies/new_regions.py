"""Regions that begin empty: made at the nodes of all their copies, and dropped there again.

A region exists when its leader and a majority of its copies have answered (docs/protocols.md P5.8).
Its leader requires every copy that the order names, so a copy that has not answered leaves the set
in the transaction that publishes the table, and is a learner from the first (P5.10).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from keys.model.tables import CopyRole, RegionRoute, TableInfo, TableRoute
from metasrv_base.values.frozen import frozen
from procedures.context import Context
from procedures.quorum import majority
from procedures.steps.copies.copy_orders import (
    CopyResults,
    CopyTarget,
    MakeCopyOrder,
    create_copy,
    drop_copy,
    living,
    order_copies,
    targets_of,
)
from procedures.steps.region_orders import OrderAnswers

ORDERS_AT_ONCE_MAX = 512
"""Orders of one round of requests, over all nodes. The copies of a region are of one round."""
CopyId = tuple[str, str]
"""Region and node."""


@frozen
class NewTable:
    info: TableInfo
    route: TableRoute
    """The route as planned: of a table that is created, every copy is in sync."""


async def make_regions(
    context: Context,
    tables: Sequence[NewTable],
    make: MakeCopyOrder = create_copy,
    *,
    by_leader: bool = False,
) -> tuple[TableRoute, ...]:
    """Makes the regions of *tables*, and returns their routes as they may be published. They may be
    made again, by the same orders. A copy on a node that is dead is not asked, and one that takes
    longer than LATE_ANSWERS_MS (region_orders.py) is waited for only while a region does not exist.
    *by_leader*: the answer of the leader alone makes a region.

    Raises Unavailable, as `OrderAnswers.must_all_succeed`, for regions that do not exist yet.
    """
    absent = set[CopyId]()
    done, total = 0, sum([len(table.route.region_routes) for table in tables])
    for targets in _rounds(tables):
        if total > ORDERS_AT_ONCE_MAX:
            context.progress(done, total, "regions")
        alive = context.alive_nodes()
        here = [target for target in targets if target.is_leader or target.node in alive]
        decided = partial(_is_decided, context, targets, by_leader=by_leader)
        answers = await order_copies(context, here, make, decided)
        missing = _missing(targets, answers.results)
        if missing:
            _must_exist(targets, answers, missing, by_leader=by_leader)
            absent |= missing
        done += len({target.region.region_id for target in targets})
    if not absent:
        return tuple([table.route for table in tables])
    return tuple([with_learners(table.route, absent) for table in tables])


async def drop_new_regions(context: Context, tables: Sequence[NewTable]) -> None:
    """Drops all copies on nodes that answer. Another is told by the answers to its heartbeats, when
    it is back."""
    able = context.answering_nodes()
    for targets in _rounds(tables):
        answers = await order_copies(context, living(targets, able), drop_copy)
        answers.must_all_succeed()


def with_learners(route: TableRoute, absent: Collection[CopyId]) -> TableRoute:
    """*route*, in which the copies that are *absent* are learners."""

    def standing(region: RegionRoute) -> RegionRoute:
        copies = tuple(
            copy.model_copy(update={"role": CopyRole.LEARNER})
            if (region.region_id, copy.node) in absent
            else copy
            for copy in region.copies
        )
        return region if copies == region.copies else region.with_copies(copies)

    return route.model_copy(update={"region_routes": tuple(map(standing, route.region_routes))})


def _must_exist(
    targets: Sequence[CopyTarget],
    answers: OrderAnswers,
    missing: Collection[CopyId],
    *,
    by_leader: bool,
) -> None:
    lacking = _lacking(targets, missing, by_leader=by_leader)
    if lacking:
        some = [target for target in targets if target.region.region_id in lacking]
        names, nodes = {target.name for target in some}, {target.node for target in some}
        OrderAnswers(
            {name: result for name, result in answers.results.items() if name in names},
            {node: error for node, error in answers.silent.items() if node in nodes},
        ).must_all_succeed()


def _is_decided(
    context: Context, targets: Sequence[CopyTarget], results: CopyResults, *, by_leader: bool
) -> bool:
    """Whether all regions exist, or the copies that these lack are on nodes which are dead by now,
    or answer no orders."""
    missing = _missing(targets, results)
    lacking = _lacking(targets, missing, by_leader=by_leader)
    able = context.answering_nodes() if lacking else ()
    return not any(
        target.region.region_id in lacking and _id(target) in missing and target.node in able
        for target in targets
    )


def _missing(targets: Sequence[CopyTarget], results: CopyResults) -> set[CopyId]:
    """The copies that were not made, as far as *results* tell."""
    made = {name for name, result in results.items() if result.error is None}
    return {_id(target) for target in targets if target.name not in made}


def _lacking(
    targets: Sequence[CopyTarget], missing: Collection[CopyId], *, by_leader: bool
) -> set[str]:
    """Ids of the regions that do not exist without the copies that are *missing*."""
    lacking = {
        target.region.region_id for target in targets if target.is_leader and _id(target) in missing
    }
    if not by_leader:
        of_sets = [target for target in targets if target.node in target.region.in_sync]
        planned = Counter(target.region.region_id for target in of_sets)
        made = Counter(t.region.region_id for t in of_sets if _id(t) not in missing)
        lacking |= {name for name, count in planned.items() if made[name] < majority(count)}
    return lacking


def _id(target: CopyTarget) -> CopyId:
    return target.region.region_id, target.node


def _rounds(tables: Sequence[NewTable]) -> Iterator[list[CopyTarget]]:
    targets = list[CopyTarget]()
    for table in tables:
        for region in table.route.region_routes:
            if len(targets) >= ORDERS_AT_ONCE_MAX:
                yield targets
                targets = []
            targets += targets_of(table.info, (region,))
    if targets:
        yield targets
