"""Steps of failures: a node starts again, with its disk or without."""

from collections.abc import Iterator

from tests.model.copies.world import COPY_TICKS, Event, Node, Setting, Step, World, with_node


def steps(on: Setting, world: World) -> Iterator[Step]:
    for number, node in enumerate(world.nodes):
        if world.crashes:
            started = with_node(world, number, _started(on, node))
            after = started._replace(crashes=world.crashes - 1)
            yield Event("{} starts again", (number,)), after
        if world.losses and not node.gone:
            empty = Node(0, (), 0, 0, False, True, node.promised, False, None)
            started = with_node(world, number, _started(on, empty))
            after = started._replace(losses=world.losses - 1)
            yield Event("{} starts again without its disk", (number,)), after


def _started(on: Setting, node: Node) -> Node:
    """The node without what it had in memory: leadership, common position, last promise."""
    promised = 0
    if on.bounds.reads and on.rules.restart_promises:
        promised = COPY_TICKS
    return node._replace(commit=node.flushed, promised=promised, read=False, lead=None)
