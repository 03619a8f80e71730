"""Lookup of proved graphs: those that the checker has passed exactly as they are.

`metasrv_base/elements/proved.py` is generated and has the digest of each graph that passed. A kind
of procedure is registered only if the graphs it moves elements along are there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from metasrv_base.elements.graph import Behaviour, Graph


@dataclass(frozen=True, slots=True)
class Proof:
    """The checker's record of one graph."""

    digest: str
    """Digest of the graph."""
    add_states: int
    """Visited while it is added, with every cancel."""
    drop_states: int
    """Visited while it is dropped, with its undrop."""


def digest(graph: Graph) -> str:
    """Returns the digest of everything that the graph defines and implies."""
    text = json.dumps(described(graph), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def described(graph: Graph) -> dict[str, Any]:
    """The graph as JSON can hold it."""
    return {
        "name": graph.name,
        "holds": graph.holds,
        "unique": graph.unique,
        "alone": graph.alone,
        "mirrors": graph.mirrors,
        "final": graph.final,
        "add": graph.add,
        "drop": graph.drop,
        "reorg": graph.reorg,
        "cleans": graph.cleans,
        "cancel": {state: graph.cancel(state) for state in graph.add[1:-1]},
        "undrop_limit": graph.undrop_limit,
        "edges": sorted(graph.edges()),
        "behaviours": {state: _acts(does) for state, does in graph.behaviours.items()},
    }


def is_proved(graph: Graph, proved: Mapping[str, Proof]) -> bool:
    """Whether it passed as it is now: any change of it needs a new proof."""
    proof = proved.get(graph.name)
    return proof is not None and proof.digest == digest(graph)


def _acts(does: Behaviour) -> dict[str, Any]:
    return {field.name: getattr(does, field.name) for field in fields(does)}
