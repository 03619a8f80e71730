"""Steps of the route: the set grows and shrinks, a copy is promoted, opens, and comes back."""

from collections.abc import Iterator

from tests.model.copies.world import (
    Ask,
    Event,
    Lead,
    Node,
    Open,
    Route,
    Setting,
    Step,
    World,
    bits,
    put,
    with_node,
)


def steps(on: Setting, world: World) -> Iterator[Step]:
    if world.route.version < on.bounds.versions:
        if on.bounds.shrinks:
            yield from _shrinks(on, world)
        yield from _gives_new_roots(on, world)
        if world.route.epoch < on.bounds.epochs:
            yield from _promotes(on, world)
    yield from _opens(on, world)
    yield from _grows(on, world)
    for number, node in enumerate(world.nodes):
        if node.lead is not None:
            yield from _requires(on, world, number, node, node.lead)
            yield from _reads_route(world, number, node, node.lead)
            yield from _forgets(on, world, number, node, node.lead)


def _shrinks(on: Setting, world: World) -> Iterator[Step]:
    """A copy that is slow, silent or lost leaves the set and is a learner."""
    route = world.route
    for copy in bits(route.in_sync & ~(1 << route.leader)):
        if on.rules.slow_leaves or not on.bounds.stalls:
            in_sync = route.in_sync & ~(1 << copy)
            marked = 1 << copy if _is_marked(on, world, in_sync) else 0
            after = route._replace(
                version=route.version + 1,
                in_sync=in_sync,
                learners=route.learners | 1 << copy,
                eligible=route.eligible | marked,
            )
            yield Event("route: {} leaves the set", (copy,)), world._replace(route=after)


def _is_marked(on: Setting, world: World, in_sync: int) -> bool:
    """Whether a copy is eligible that leaves. A leader that has started again, or lost its disk,
    may have asked for that before; it leads no more at this epoch."""
    if not on.rules.marks_eligible or in_sync.bit_count() >= on.bounds.min_in_sync:
        return False
    leader = world.nodes[world.route.leader]
    if leader.epoch != world.route.epoch:
        return leader.gone
    if leader.lead is None or not on.rules.marks_after_opening:
        return True
    return leader.commit >= leader.lead.opened


def _gives_new_roots(on: Setting, world: World) -> Iterator[Step]:
    """A learner whose disk was lost gets a new root, where it begins with nothing. Orders to open
    name the root before."""
    route = world.route
    for copy in bits(route.learners):
        node = world.nodes[copy]
        if node.gone:
            fresh = Node(0, (), 0, 0, False, False, node.promised, False, None)
            named = route._replace(
                version=route.version + 1, eligible=route.eligible & ~(1 << copy)
            )
            opens = tuple(order for order in world.opens if order.leader != copy)
            after = with_node(world, copy, fresh)._replace(route=named, opens=opens)
            if on.rules.acks_name_root:
                after = without_acks_of(after, copy)
            yield Event("route: {} is a learner in a new root", (copy,)), after


def without_acks_of(world: World, copy: int) -> World:
    """The world in which no leader counts what the former root of a copy has acknowledged."""
    for number, node in enumerate(world.nodes):
        if node.lead is not None:
            heard, sent = put(node.lead.heard, copy, 0), put(node.lead.sent, copy, 0)
            lead = node.lead._replace(heard=heard, sent=sent)
            world = with_node(world, number, node._replace(lead=lead))
    return world


def _promotes(on: Setting, world: World) -> Iterator[Step]:
    """The leader is taken for dead, or has started again and is promoted itself."""
    route = world.route
    candidates = route.in_sync if on.rules.promotes_in_sync else route.in_sync | route.learners
    if route.in_sync == 1 << route.leader:
        candidates |= route.eligible
    for copy in bits(candidates):
        former = 1 << route.leader if copy != route.leader else 0
        in_sync, learners = route.in_sync | 1 << copy, route.learners & ~(1 << copy)
        if on.rules.removes_leader:
            in_sync, learners = in_sync & ~former, learners | former
        eligible = 0 if on.rules.clears_at_epoch else route.eligible & ~(1 << copy)
        after = Route(route.version + 1, route.epoch + 1, copy, in_sync, learners, eligible)
        is_late = bool(route.eligible >> copy & 1) and on.rules.outwaits_lease
        order = Open(after.epoch, copy, in_sync, is_late)
        opens = tuple(sorted((*world.opens, order)))
        event = Event("route: {} is promoted at epoch {}", (copy,), (after.epoch,))
        yield event, world._replace(route=after, opens=opens)


def _opens(on: Setting, world: World) -> Iterator[Step]:
    """An order to open arrives, however late; one below the node's epoch is refused."""
    for order in world.opens:
        node = world.nodes[order.leader]
        rest = tuple(each for each in world.opens if each != order)
        refused = node.gone and on.rules.refuses_lost_root
        if order.epoch <= node.epoch or refused:
            yield Event("{} refuses to open", (order.leader,)), world._replace(opens=rest)
            continue
        none = (0,) * len(world.nodes)
        lead = Lead(order.in_sync, order.in_sync, 0, True, none, none, len(node.log), none, none)
        leading = node._replace(epoch=order.epoch, lead=lead, read=False)
        before = _without_leases(world) if order.is_late else world
        after = with_node(before._replace(opens=rest), order.leader, leading)
        yield Event("{} opens epoch {}", (order.leader,), (order.epoch,)), after


def _without_leases(world: World) -> World:
    """The world in which the leases of all leaders have ended."""
    for number, node in enumerate(world.nodes):
        if node.lead is not None:
            ended = node._replace(lead=node.lead._replace(is_leased=False))
            world = with_node(world, number, ended)
    return world


def _requires(on: Setting, world: World, number: int, node: Node, lead: Lead) -> Iterator[Step]:
    """A leader asks for a learner that has caught up to be added to the set."""
    route = world.route
    if (route.epoch, route.leader) != (node.epoch, number) or world.asks:
        return  # it would read of itself that it no longer leads, or asks already
    if route.version >= on.bounds.versions:
        return
    if node.promised and on.rules.grows_after_promise:
        return
    least = max(
        node.commit if on.rules.catches_up else 0,
        lead.opened if on.rules.catches_up_to_opening else 0,
    )
    for copy in bits(route.learners):
        if lead.heard[copy] >= least and not world.nodes[copy].gone:
            asks = (Ask(route.version, node.epoch, copy),)
            required = lead.required | (1 << copy if on.rules.requires_first else 0)
            asking = node._replace(lead=lead._replace(required=required))
            after = with_node(world._replace(asks=asks), number, asking)
            yield Event("{} requires {}, asks to add it", (number, copy)), after


def _grows(on: Setting, world: World) -> Iterator[Step]:
    route = world.route
    for ask in world.asks:
        rest = tuple(each for each in world.asks if each != ask)
        is_current = ask.version == route.version and ask.epoch == route.epoch
        joins = 1 << ask.learner
        if (is_current or not on.rules.compares_route) and route.learners & joins:
            in_sync, eligible = route.in_sync | joins, route.eligible & ~joins
            has_minimum = in_sync.bit_count() >= on.bounds.min_in_sync
            after = route._replace(
                version=route.version + 1,
                in_sync=in_sync,
                learners=route.learners & ~joins,
                eligible=0 if has_minimum and on.rules.clears_at_minimum else eligible,
            )
            event = Event("route: {} joins the set", (ask.learner,))
            yield event, world._replace(route=after, asks=rest)
        if not is_current:
            event = Event("route: to add {} is refused", (ask.learner,))
            yield event, world._replace(asks=rest)


def _reads_route(world: World, number: int, node: Node, lead: Lead) -> Iterator[Step]:
    """A leader reads the newest route. To read an older one is to have read it earlier. A request
    that was computed from an older version has failed, so its learner is required no more."""
    route = world.route
    if route.epoch > node.epoch:
        after = node._replace(lead=None, read=False)
        event = Event("{} reads that it no longer leads", (number,))
        yield event, with_node(world, number, after)
    elif route.leader == number:
        current = (node.epoch, route.version)
        pending = [ask.learner for ask in world.asks if (ask.epoch, ask.version) == current]
        asked = sum(1 << copy for copy in pending if lead.required >> copy & 1)
        required = route.in_sync | asked
        seen = lead._replace(members=route.in_sync, required=required, eligible=route.eligible)
        if seen != lead:
            after = node._replace(lead=seen)
            event = Event("{} reads the route", (number,))
            yield event, with_node(world, number, after)


def _forgets(on: Setting, world: World, number: int, node: Node, lead: Lead) -> Iterator[Step]:
    """Mutants only: a leader stops to require a copy by itself."""
    route = world.route
    for copy in bits(lead.required & ~(1 << number)):
        pending = any(ask.learner == copy for ask in world.asks)
        dropped = node._replace(lead=lead._replace(required=lead.required & ~(1 << copy)))
        if pending and not on.rules.requires_until_known:
            event = Event("{} takes the request to add {} for failed", (number, copy))
            yield event, with_node(world, number, dropped)
        if not pending and not on.rules.shrinks_in_route and route.in_sync >> copy & 1:
            event = Event("{} requires {} no more", (number, copy))
            yield event, with_node(world, number, dropped)
