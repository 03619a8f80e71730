"""Steps of movement: a copy is added to the region, removed from it, and its folder is deleted."""

from collections.abc import Iterator

from tests.model.copies.members import without_acks_of
from tests.model.copies.world import Event, Node, Route, Setting, Step, World, bits, with_node


def steps(on: Setting, world: World) -> Iterator[Step]:
    if not on.bounds.moves:
        return
    route = world.route
    if route.version < on.bounds.versions:
        yield from _adds(on, world)
        yield from _removes(on, world)
    for number, node in enumerate(world.nodes):
        if not node.gone and _may_delete(on, route, number):
            empty = node._replace(log=(), commit=0, flushed=0, has_file=False, gone=True, lead=None)
            yield Event("{} deletes its folder", (number,)), with_node(world, number, empty)


def _adds(on: Setting, world: World) -> Iterator[Step]:
    """A node that has no copy gets one, in a root that no copy had before."""
    route = world.route
    for copy, node in enumerate(world.nodes):
        if _is_named(route, copy):
            continue
        fresh = Node(0, (), 0, 0, False, False, node.promised, False, None)
        named = route._replace(version=route.version + 1, learners=route.learners | 1 << copy)
        after = with_node(world, copy, fresh)._replace(route=named)
        if on.rules.acks_name_root:
            after = without_acks_of(after, copy)
        yield Event("route: {} is added as a learner", (copy,)), after


def _removes(on: Setting, world: World) -> Iterator[Step]:
    route = world.route
    for copy in bits(route.in_sync | route.learners):
        if _may_go(on, route, copy):
            rest = ~(1 << copy)
            named = route._replace(
                version=route.version + 1,
                in_sync=route.in_sync & rest,
                learners=route.learners & rest,
                eligible=route.eligible & rest,
            )
            yield Event("route: {} is removed", (copy,)), world._replace(route=named)


def _may_go(on: Setting, route: Route, copy: int) -> bool:
    """As many as the table is to have are in sync without it."""
    if copy == route.leader:
        return False
    stay = route.in_sync & ~(1 << copy)
    return stay.bit_count() >= on.bounds.in_sync or not on.rules.adds_before_removing


def _may_delete(on: Setting, route: Route, copy: int) -> bool:
    if _is_named(route, copy):
        return not on.rules.route_before_folder and _may_go(on, route, copy)
    return True


def _is_named(route: Route, copy: int) -> bool:
    return bool((route.in_sync | route.learners) >> copy & 1)
