"""Pairs of states that may be in use at one time: F1's definition, checked on every database.

Two schemas go together if each database that is consistent with both stays consistent with both,
whatever statement of either is executed (Rae et al., section 3.1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from metasrv_base.elements.graph import Edge, Graph
from metasrv_base.elements.graphs import TYPE_CHANGE
from metasrv_base.elements.proof import mirrored
from metasrv_base.elements.proof.database import (
    Database,
    ProofFault,
    ProofStatement,
    databases,
    faults,
    perform,
    statements,
)
from metasrv_base.elements.proof.journey import States
from metasrv_base.elements.proof.space import Whole
from metasrv_base.elements.states import ElementState


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One statement that spoils a database for the other schema."""

    before: Database | Whole
    by: ElementState
    """The state in which the one who executes it has the element."""
    does: ProofStatement
    after: Database | Whole
    other: ElementState
    fault: ProofFault

    def __str__(self) -> str:
        return (
            f"{_text(self.before)}; `{self.does}` at {self.by} leaves {_text(self.after)}: "
            f"{self.fault} at {self.other}"
        )


def _text(database: Database | Whole) -> str:
    return str(database) if isinstance(database, Database) else " and ".join(map(str, database))


def check_pairs(graph: Graph) -> Mapping[Edge, Counterexample | None]:
    """Returns, for each two states of *graph*, the one nearer to ABSENT first, a counterexample;
    None: they go together."""
    states = [state for state in ElementState if state in graph.behaviours]
    return {pair: next(_counterexamples(graph, pair), None) for pair in combinations(states, 2)}


def go_together(graph: Graph, edge: Edge) -> bool:
    """Whether two holders may have the element in these two states at one time."""
    return next(_counterexamples(graph, edge), None) is None


def _counterexamples(graph: Graph, pair: Edge) -> Iterator[Counterexample]:
    """The one with the smallest database first."""
    if graph.mirrors:
        yield from _mirrored(graph, pair)
        return
    for before in databases(graph):
        if any(fault for state in pair for fault in _faults(graph, state, before)):
            continue
        for by in pair:
            behaviour = graph.behaviours[by]
            for does in statements(graph, behaviour, before):
                after = perform(graph, behaviour, before, does)
                if after is None:
                    continue
                for other in pair:
                    for fault in _faults(graph, other, after):
                        yield Counterexample(before, by, does, after, other, fault)


def _faults(graph: Graph, state: ElementState, db: Database) -> Iterator[ProofFault]:
    """A table alone lies apart, under ids that never come back: where it is absent its rows are
    in nobody's way. (That none is left in the end is for `explore` to show.)"""
    for fault in faults(graph, state, db):
        if not (graph.alone and fault is ProofFault.LEFT_OVER):
            yield fault


def _mirrored(graph: Graph, pair: Edge) -> Iterator[Counterexample]:
    """Yields what `_counterexamples` does, for two columns that change at once."""
    graphs = tuple(graph if member.name == graph.name else member for member in TYPE_CHANGE)
    both = {state: mirrored.joined(graph, state) for state in pair}
    for before in mirrored.wholes():
        if any(fault for states in both.values() for fault in _wrong(graphs, states, before)):
            continue
        for by in pair:
            behaviours = mirrored.behaviours_of(graphs, both[by])
            for does in mirrored.statements(behaviours, before):
                after = mirrored.perform(behaviours, before, does)
                if after is None:
                    continue
                for other in pair:
                    for fault in _wrong(graphs, both[other], after):
                        yield Counterexample(before, by, does, after, other, fault)


def _wrong(graphs: tuple[Graph, ...], states: States, whole: Whole) -> Iterator[ProofFault]:
    """Ids never come back, so what is stored for a column that is absent is in nobody's way. (That
    none is left in the end is for `explore` to show.)"""
    for fault in mirrored.faults(graphs, states, whole):
        if fault is not ProofFault.LEFT_OVER:
            yield fault
