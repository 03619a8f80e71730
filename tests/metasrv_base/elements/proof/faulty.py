"""Graphs and statements that go wrong on purpose, and what an exploration must find."""

from dataclasses import dataclass, replace

from metasrv_base.elements.graph import Act, Behaviour, Graph
from metasrv_base.elements.graphs import (
    INDEX,
    PUBLIC,
    WRITE_ONLY,
)
from metasrv_base.elements.proof.database import (
    Database,
    ProofFault,
    ProofStatement,
    acts_of,
    perform,
)
from metasrv_base.elements.proof.explore import ANY, Exploration, explore
from metasrv_base.elements.proof.journey import Direction, ProofChange
from metasrv_base.elements.proof.protocol import Protocol
from metasrv_base.elements.proof.space import Perform


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: what is done, and what an exploration must find."""

    graph: Graph
    way: Direction
    protocol: Protocol
    found: ProofFault | None
    """None: it holds."""
    does: Perform = perform
    first: ProofFault | None = None
    """The fault that lies even nearer, if that is not `found`."""
    beside: Graph | None = None
    """The graph of the element that goes as this one comes."""

    def explored(self, seek: ProofFault | None = None) -> Exploration:
        change = ProofChange((self.graph,), (self.way,))
        if self.beside is not None:
            change = ProofChange((self.graph, self.beside), (Direction.ADD, Direction.DROP))
        return explore(change, self.protocol, self.does, {seek} if seek else ANY)


def behaving(graph: Graph, **changed: Behaviour) -> Graph:
    """*graph* with another behaviour in some states."""
    states = {state: changed.get(state.name, does) for state, does in graph.behaviours.items()}
    return replace(graph, behaviours=states)


def always_rewriting() -> Graph:
    """An index whose entry is put by every update, whatever it changes."""
    rewritten = {
        state.name: replace(INDEX.behaviours[state], update_elsewhere=(Act.PUT,))
        for state in (WRITE_ONLY, PUBLIC)
    }
    return behaving(INDEX, **rewritten)


def removing_blindly(
    graph: Graph, behaviour: Behaviour, db: Database, does: ProofStatement
) -> Database | None:
    """As `perform`, but a unique key is removed whichever row it leads to."""
    after = perform(graph, behaviour, db, does)
    if after is None or Act.REMOVE not in acts_of(behaviour, does):
        return after
    old, own = db.rows[does.key], (does.value, does.key)
    held = frozenset(pair for pair in after.held if pair == own or pair[0] != old)
    return after._replace(held=held)
