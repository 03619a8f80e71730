"""`metasrv explain COMMAND...`: what a change would do, step by step, and what is in its way now.

`--proof`: why such a change is safe, worked out here and now.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from metasrv.cli.output import show_json, show_table
from metasrv_base.elements.graph import Graph
from metasrv_base.elements.graphs import GRAPHS
from metasrv_base.elements.proof.pairs import check_pairs
from metasrv_base.elements.proofs import described, digest, is_proved
from metasrv_base.elements.proved import PROVED

READS = frozenset({"list", "get", "history", "route", "watch", "locks", "poisons"})
"""Commands that have no plan, below the groups of commands."""
HEAD = ("element", "states in use together", "verdict")
settings = {"context_settings": {"ignore_unknown_options": True}}


def command(
    change: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...",
            help="A command, e.g. `index create t by_a --column a`; it is not run.",
        ),
    ] = None,
    proof: Annotated[
        bool,
        typer.Option(
            "--proof", help="Show which states of an element may be in use together, and why."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Show what a change would do, step by step, and why it is safe.

    Each step is shown with the schema version that it makes, what it waits for, the rows that it
    reads, how long that takes, and whether it can be cancelled by then. Nothing is changed.
    """
    if bool(change) == proof:
        raise typer.BadParameter("give the command of a change, or --proof")
    if change:
        _plan(change, as_json)
        return
    if as_json:
        show_json([_document(graph) for graph in GRAPHS.values()])
        return
    show_table(HEAD, (row for graph in GRAPHS.values() for row in _rows(graph)))
    typer.echo("\nEvery order of events that a change can meet, by `make generate`:\n")
    show_table(
        ("element", "states of an add", "states of a drop", "verdict"),
        [(name, *_explored(graph)) for name, graph in GRAPHS.items()],
    )


def _plan(change: Sequence[str], as_json: bool) -> None:
    """The command itself, which is told not to change anything."""
    if len(change) > 1 and change[1] in READS:
        raise typer.BadParameter(
            f"{' '.join(change[:2])} changes nothing; give the command of a change, such as "
            "`index create` or `table alter`"
        )
    run = importlib.import_module("metasrv.cli.main").main
    run([*change, "--dry-run", *(["--json"] if as_json else [])])


def _rows(graph: Graph) -> Iterator[tuple[str, str, str]]:
    edges = {frozenset(edge) for edge in graph.edges()}
    for pair, counterexample in check_pairs(graph).items():
        used = "holds" if frozenset(pair) in edges else "holds, never in use"
        yield graph.name, " + ".join(pair), str(counterexample) if counterexample else used


def _explored(graph: Graph) -> tuple[str, str, str]:
    if not is_proved(graph, PROVED):
        return "-", "-", "not proved"
    proof = PROVED[graph.name]
    return f"{proof.add_states:,}", f"{proof.drop_states:,}", "holds"


def _document(graph: Graph) -> Mapping[str, Any]:
    proof = PROVED.get(graph.name)
    return {
        "element": graph.name,
        "graph": described(graph),
        "digest": digest(graph),
        "proved": is_proved(graph, PROVED),
        "states_explored": None if proof is None else proof.add_states + proof.drop_states,
        "pairs": [
            {
                "states": pair,
                "holds": counterexample is None,
                "counterexample": None if counterexample is None else str(counterexample),
            }
            for pair, counterexample in check_pairs(graph).items()
        ],
    }
