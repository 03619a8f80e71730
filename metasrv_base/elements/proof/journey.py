"""Orders in which a change publishes the states of its elements: forward, back, or undone.

A node is a published schema version together with all that came before it. Version n of a table
is `line[n]`; what a server that has loaded version n does follows from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from metasrv_base.elements.graph import Graph, Path
from metasrv_base.elements.states import ElementState

States: TypeAlias = tuple[ElementState, ...]
"""States of the elements of the change, in order."""
Line: TypeAlias = tuple[States, ...]


class Direction(StrEnum):
    ADD = "add"
    DROP = "drop"
    BACK = "back"
    """A cancelled add, on the rest of the drop; a drop that is undone."""


@dataclass(frozen=True, slots=True)
class ProofChange:
    """A change to explore: each element is added or dropped, all in one change."""

    graphs: tuple[Graph, ...]
    ways: tuple[Direction, ...]
    """ADD or DROP, of each."""

    @property
    def name(self) -> str:
        return " and ".join(f"{way} {graph.name}" for graph, way in _parts(self))

    @property
    def mirrors(self) -> bool:
        """Whether one of two columns comes in the place of the other."""
        return all(graph.mirrors for graph in self.graphs)


@dataclass(frozen=True, slots=True)
class JourneyNode:
    line: Line
    """States by version; the last is the newest that is published."""
    way: Direction
    """ADD where anything is added."""
    onward: int | None = None
    """The node that publishes the next version; None: the change ends here."""
    back: int | None = None
    """The node that publishes the first version of a cancel or an undrop."""
    rival: int | None = None
    """For the first version of a cancel: the node that the previous owner would have published."""
    flips: bool = False
    """The next version cannot be undone; every reorg is done before it."""

    @property
    def version(self) -> int:
        return len(self.line) - 1

    def __str__(self) -> str:
        return " > ".join("+".join(states) for states in self.line)


def journey(change: ProofChange) -> tuple[JourneyNode, ...]:
    """Nodes by number. At the first nothing has been published yet."""
    line, flip = _forward(change)
    way = Direction.ADD if Direction.ADD in change.ways else Direction.DROP
    nodes: list[JourneyNode] = []
    undone: list[JourneyNode] = []
    for n in range(len(line)):
        undo = _backward(change, line[n]) if 0 < n < flip else ()
        onward = n + 1 if n + 1 < len(line) else None
        first = len(line) + len(undone)
        back = first if undo else None
        nodes.append(JourneyNode(line[: n + 1], way, onward, back, flips=n + 1 == flip))
        undone += _branch(line[: n + 1], undo, first, onward)
    return (*nodes, *undone)


def _branch(line: Line, undo: Line, first: int, rival: int | None) -> list[JourneyNode]:
    """The nodes from *first* on that publish *undo* after *line*."""
    return [
        JourneyNode(
            line + undo[: n + 1],
            Direction.BACK,
            onward=first + n + 1 if n + 1 < len(undo) else None,
            rival=None if n else rival,
        )
        for n in range(len(undo))
    ]


def _forward(change: ProofChange) -> tuple[Line, int]:
    """Every version of a change that is not undone, and the number of the one that cannot be.

    Each element goes to the last state from which it can come back, and waits there for the
    others; one version takes all of them over, and what is dropped goes on alone.
    """
    limits = [
        graph.add.index(graph.cancel_limit)
        if way is Direction.ADD
        else graph.drop.index(graph.undrop_limit)
        for graph, way in _parts(change)
    ]
    paths = [graph.add if way is Direction.ADD else graph.drop for graph, way in _parts(change)]
    flip = max(limits) + 1
    return _together(
        [
            (*_padded(path[: limit + 1], flip), *path[limit + 1 :])
            for path, limit in zip(paths, limits, strict=True)
        ]
    ), flip


def _backward(change: ProofChange, states: States) -> Line:
    """Returns the versions published when the change is undone from *states*, where it still can
    be."""
    public = ElementState.PUBLIC
    return _together(
        [
            graph.cancel(state) or (state,) if way is Direction.ADD else (public,)
            for (graph, way), state in zip(_parts(change), states, strict=True)
        ]
    )


def _parts(change: ProofChange) -> list[tuple[Graph, Direction]]:
    return list(zip(change.graphs, change.ways, strict=True))


def _together(paths: Sequence[Path]) -> Line:
    """All *paths* at once, step by step; who has arrived waits."""
    length = max(map(len, paths))
    return tuple(zip(*(_padded(path, length) for path in paths), strict=True))


def _padded(path: Path, length: int) -> Path:
    return path + path[-1:] * (length - len(path))
