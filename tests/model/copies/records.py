"""Steps of records: a write is ordered, copied, acknowledged by copies, and flushed."""

from collections.abc import Iterator

from tests.model.copies.world import (
    RECORD,
    Event,
    Lead,
    Node,
    Setting,
    Step,
    World,
    bits,
    put,
    with_node,
    writes_in,
)


def steps(on: Setting, world: World) -> Iterator[Step]:
    for number, node in enumerate(world.nodes):
        if node.lead is not None:
            yield from _orders(on, world, number, node, node.lead)
            for copy in range(len(world.nodes)):
                if copy != number and follows(world, node.lead, copy):
                    yield from _hears_leader(on, world, number, copy)
                    yield from _acknowledges(world, number, copy)
        yield from _stores(on, world, number, node)


def follows(world: World, lead: Lead, copy: int) -> bool:
    """Whether a leader sends records to *copy*."""
    return bool((lead.required | world.route.learners) >> copy & 1)


def has_minimum(on: Setting, world: World, lead: Lead) -> bool:
    rules = on.rules
    counted = lead.members if rules.counts_named_alone else lead.required
    if not rules.counts_in_sync_alone:
        counted |= world.route.learners
    return counted.bit_count() >= on.bounds.min_in_sync or not rules.min_in_sync


def is_frozen(on: Setting, lead: Lead) -> bool:
    """Whether its common position stands still."""
    is_below = lead.members.bit_count() < on.bounds.min_in_sync
    return bool(lead.eligible) and is_below and on.rules.freezes_common


def is_serving(on: Setting, node: Node) -> bool:
    return not (on.rules.waits_own_promise and node.promised)


def has_room(on: Setting, node: Node) -> bool:
    held = len(node.log) - node.flushed
    return held < on.bounds.budget or not on.rules.refuses_over_budget


def _orders(on: Setting, world: World, number: int, node: Node, lead: Lead) -> Iterator[Step]:
    """A client sends each write to whoever believes to lead, again until it is answered."""
    if not (is_serving(on, node) and has_minimum(on, world, lead) and has_room(on, node)):
        return
    known = node.log if on.rules.replicates_statements else node.log[lead.opened :]
    for write in range(on.bounds.writes):
        if not writes_in(known) >> write & 1:
            log = (*node.log, node.epoch * RECORD + write)
            has_file = node.has_file or (on.bounds.ingests and write == 0)
            after = node._replace(log=log, has_file=has_file)
            yield _event("{} orders write {}", (number,), write, with_node(world, number, after))


def _hears_leader(on: Setting, world: World, leader: int, copy: int) -> Iterator[Step]:
    source, node, rules = world.nodes[leader], world.nodes[copy], on.rules
    assert source.lead is not None
    if node.gone and rules.refuses_lost_root:
        return
    if node.epoch > source.epoch and rules.refuses_old_epochs:
        return
    if node.epoch < source.epoch:
        after = cut_back(on, node, source.log)._replace(epoch=source.epoch, lead=None)
        form = "{} follows {} and cuts its log back to {}"
        yield _taken(form, world, leader, copy, after)
        return
    if node.lead is not None:
        return
    position = len(node.log)
    commit = max(node.commit, min(source.commit, position))
    if position < len(source.log):
        record = source.log[position]
        is_ingest = on.bounds.ingests and record % RECORD == 0
        if is_ingest and not node.has_file and rules.files_before_ack:
            return
        if has_room(on, node):
            commit = min(source.commit, position + 1)
            after = node._replace(log=(*node.log, record), commit=max(node.commit, commit))
            yield _taken("{} takes a record of {}, now has {}", world, leader, copy, after)
    elif commit > node.commit:
        after = node._replace(commit=commit)
        yield _taken("{} hears from {} what all have of its {}", world, leader, copy, after)


def cut_back(on: Setting, node: Node, log: tuple[int, ...]) -> Node:
    """The node without the part of its log that is not in that of the leader."""
    if not on.rules.cuts_back:
        return node
    common = 0
    for mine, other in zip(node.log, log, strict=False):
        if mine != other:
            break
        common += 1
    kept = max(common, node.flushed)  # what is in a file cannot be cut
    return node._replace(log=node.log[:kept], commit=min(node.commit, kept))


def _taken(form: str, world: World, leader: int, copy: int, after: Node) -> Step:
    """The copy acknowledges what it has durably, at any time later."""
    changed = with_node(world, copy, after)
    source = changed.nodes[leader]
    assert source.lead is not None
    position = len(after.log)
    if after.epoch == source.epoch and position > source.lead.sent[copy]:
        lead = source.lead._replace(sent=put(source.lead.sent, copy, position))
        changed = with_node(changed, leader, source._replace(lead=lead))
    return _event(form, (copy, leader), position, changed)


def _acknowledges(world: World, leader: int, copy: int) -> Iterator[Step]:
    source = world.nodes[leader]
    assert source.lead is not None
    lead = source.lead
    if lead.sent[copy] > lead.heard[copy]:
        heard = lead._replace(heard=put(lead.heard, copy, lead.sent[copy]))
        after = with_node(world, leader, source._replace(lead=heard))
        yield _event("{} hears that {} has {}", (leader, copy), lead.sent[copy], after)


def _stores(on: Setting, world: World, number: int, node: Node) -> Iterator[Step]:
    """A copy fetches the files of an ingest, and flushes."""
    if node.gone and on.rules.refuses_lost_root:
        return
    if on.bounds.ingests and not node.has_file and _has_a_source(on, world, number):
        after = with_node(world, number, node._replace(has_file=True))
        yield _event("{} has fetched the files", (number,), 0, after)
    position = node.commit if on.rules.flushes_below_commit else len(node.log)
    stalled = on.bounds.stalls and number != world.route.leader
    if on.bounds.flushes and position > node.flushed and not stalled:
        after = with_node(world, number, node._replace(flushed=position))
        yield _event("{} flushes the first {} records", (number,), position, after)


def _has_a_source(on: Setting, world: World, number: int) -> bool:
    """Whether a leader that this node follows has ordered the ingest and has its files."""
    return any(
        source.lead is not None
        and source.has_file
        and leader != number
        and follows(world, source.lead, number)
        and bool(writes_in(source.log) & 1)
        for leader, source in enumerate(world.nodes)
    )


def _event(form: str, nodes: tuple[int, ...], value: int, after: World) -> Step:
    return Event(form, nodes, (value,)), after


def committed(on: Setting, world: World) -> World:
    """The world in which each leader has drawn its conclusions from what it has heard.

    They need no message, and a leader that has not drawn one yet behaves as one that has not heard
    yet: so they belong to each step.
    """
    for number, node in enumerate(world.nodes):
        if node.lead is None:
            continue
        lead = node.lead
        others = [lead.heard[copy] for copy in bits(lead.required) if copy != number]
        commit = max(node.commit, min([len(node.log), *others]))
        if commit != node.commit and not is_frozen(on, lead):
            world = with_node(world, number, node._replace(commit=commit))
        has_enough = has_minimum(on, world, lead) or not on.rules.judges_minimum_again
        if is_serving(on, node) and has_enough:
            common = world.nodes[number].commit
            position = common if on.rules.acks_after_all else len(node.log)
            done = writes_in(node.log[:position])
            if done & ~world.acked:
                world = world._replace(acked=world.acked | done)
    return world
