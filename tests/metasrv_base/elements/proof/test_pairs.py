"""Pairs of states of an element that may be in use at one time: every cell, against the known
answer."""

from dataclasses import replace

import pytest

from metasrv_base.elements.graph import Act, Behaviour, Edge, Graph
from metasrv_base.elements.graphs import (
    ABSENT,
    CHANGED_COLUMN,
    DELETE_ONLY,
    GRAPHS,
    INDEX,
    OPTIONAL_COLUMN,
    PUBLIC,
    REFERRED_TABLE,
    REPLACED_COLUMN,
    REQUIRED_COLUMN,
    UNIQUE_INDEX,
    WRITE_ONLY,
)
from metasrv_base.elements.proof.database import ProofFault
from metasrv_base.elements.proof.pairs import check_pairs, go_together
from metasrv_base.elements.states import ElementState
from tests.metasrv_base.elements.proof.faulty import behaving

PAIRS = (
    (ABSENT, DELETE_ONLY),
    (DELETE_ONLY, WRITE_ONLY),
    (WRITE_ONLY, PUBLIC),
    (ABSENT, WRITE_ONLY),
    (DELETE_ONLY, PUBLIC),
    (ABSENT, PUBLIC),
)
# The known outcome, by PAIRS: + holds, x broken, - no such state.
KNOWN = {
    "index": "+++xxx",
    "unique-index": "+++xxx",
    "optional-column": "+++x+x",
    "required-column": "+++xxx",
    # Each with the state of the other that goes with it.
    "changed-column": "--++-x",
    "replaced-column": "--++-x",
    "not-null": "--++-x",
    "check": "--++-x",
    "unique": "--++-x",
    # Not in that table. Like an optional column; and with nobody who could touch it, anything.
    "referred-table": "+++x+x",
    "table": "--++-+",
}


def row_of(graph: Graph) -> str:
    found = check_pairs(graph)
    cells = ("-" if pair not in found else "x" if found[pair] else "+" for pair in PAIRS)
    return "".join(cells)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
def test_given_a_kind_of_element_when_all_pairs_are_checked_then_each_cell_is_as_known(
    graph: Graph,
) -> None:
    assert row_of(graph) == KNOWN[graph.name]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
def test_given_a_kind_of_element_then_every_edge_joins_two_states_that_go_together(
    graph: Graph,
) -> None:
    assert graph.edges()
    assert all(go_together(graph, edge) for edge in graph.edges())


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
def test_given_two_states_when_they_are_exchanged_then_the_verdict_is_the_same(
    graph: Graph,
) -> None:
    for pair, found in check_pairs(graph).items():
        assert go_together(graph, pair[::-1]) is (found is None)


def test_given_a_pair_that_is_broken_then_the_counterexample_is_one_statement_on_no_rows() -> None:
    found = check_pairs(INDEX)[(DELETE_ONLY, PUBLIC)]

    assert str(found) == (
        "rows none; stored nothing; `insert row 0 = a` at delete-only leaves rows 0=a; stored "
        "nothing: missing at public"
    )


PUT, REMOVE, FILL = Act.PUT, Act.REMOVE, Act.FILL


# What is wrong -> the graph, two states that are then not consistent, and how one sees it.
MUTANTS: dict[str, tuple[Graph, Edge, ProofFault]] = {
    "a value that does not convert is not refused": (
        behaving(CHANGED_COLUMN, WRITE_ONLY=Behaviour()),
        (WRITE_ONLY, PUBLIC),
        ProofFault.LOST,
    ),
    "a replaced column is not maintained": (
        behaving(REPLACED_COLUMN, WRITE_ONLY=Behaviour()),
        (WRITE_ONLY, PUBLIC),
        ProofFault.LOST,
    ),
    "a replaced column keeps what was updated": (
        behaving(
            REPLACED_COLUMN,
            WRITE_ONLY=replace(REPLACED_COLUMN.behaviours[WRITE_ONLY], update=(Act.KEEP,)),
        ),
        (WRITE_ONLY, PUBLIC),
        ProofFault.LOST,
    ),
    "an update in delete-only leaves the old entry": (
        behaving(INDEX, DELETE_ONLY=Behaviour(delete=(REMOVE,))),
        (DELETE_ONLY, WRITE_ONLY),
        ProofFault.ORPHAN,
    ),
    "a delete in delete-only leaves the old entry": (
        behaving(INDEX, DELETE_ONLY=Behaviour(update=(REMOVE,))),
        (DELETE_ONLY, WRITE_ONLY),
        ProofFault.ORPHAN,
    ),
    "delete-only puts entries": (
        behaving(INDEX, DELETE_ONLY=INDEX.behaviours[WRITE_ONLY]),
        (ABSENT, DELETE_ONLY),
        ProofFault.LEFT_OVER,
    ),
    "write-only does not see inserts": (
        behaving(INDEX, WRITE_ONLY=replace(INDEX.behaviours[WRITE_ONLY], insert=())),
        (WRITE_ONLY, PUBLIC),
        ProofFault.MISSING,
    ),
    "write-only does not see updates": (
        behaving(INDEX, WRITE_ONLY=replace(INDEX.behaviours[WRITE_ONLY], update=())),
        (DELETE_ONLY, WRITE_ONLY),
        ProofFault.ORPHAN,
    ),
    "an update in write-only only removes": (
        behaving(INDEX, WRITE_ONLY=replace(INDEX.behaviours[WRITE_ONLY], update=(REMOVE,))),
        (WRITE_ONLY, PUBLIC),
        ProofFault.MISSING,
    ),
    "an update in write-only only puts": (
        behaving(INDEX, WRITE_ONLY=replace(INDEX.behaviours[WRITE_ONLY], update=(PUT,))),
        (WRITE_ONLY, PUBLIC),
        ProofFault.ORPHAN,
    ),
    "write-only is read": (
        behaving(INDEX, WRITE_ONLY=INDEX.behaviours[PUBLIC]),
        (DELETE_ONLY, WRITE_ONLY),
        ProofFault.MISSING,
    ),
    "a unique key is not checked in write-only": (
        behaving(
            UNIQUE_INDEX,
            WRITE_ONLY=replace(UNIQUE_INDEX.behaviours[WRITE_ONLY], insert=(PUT,)),
        ),
        (WRITE_ONLY, PUBLIC),
        ProofFault.MISSING,
    ),
    "write-only does not fill a required column": (
        behaving(REQUIRED_COLUMN, WRITE_ONLY=REQUIRED_COLUMN.behaviours[DELETE_ONLY]),
        (WRITE_ONLY, PUBLIC),
        ProofFault.MISSING,
    ),
    "write-only puts the default in the place of what a user gave": (
        behaving(
            REQUIRED_COLUMN,
            WRITE_ONLY=replace(REQUIRED_COLUMN.behaviours[WRITE_ONLY], update_elsewhere=(FILL,)),
        ),
        (WRITE_ONLY, PUBLIC),
        ProofFault.LOST,
    ),
    "delete-only drops the value when the row is updated": (
        behaving(
            OPTIONAL_COLUMN,
            DELETE_ONLY=replace(OPTIONAL_COLUMN.behaviours[DELETE_ONLY], update_elsewhere=()),
        ),
        (DELETE_ONLY, PUBLIC),
        ProofFault.LOST,
    ),
    "a row that belongs to a row of the table stays": (
        behaving(REFERRED_TABLE, DELETE_ONLY=Behaviour()),
        (DELETE_ONLY, PUBLIC),
        ProofFault.ORPHAN,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_given_a_graph_with_a_fault_when_its_pairs_are_checked_then_one_statement_shows_it(
    name: str,
) -> None:
    graph, edge, fault = MUTANTS[name]

    found = check_pairs(graph)[edge]

    assert found is not None
    assert found.fault is fault, str(found)
    assert edge in graph.edges(), "a pair that never meets proves nothing"


def adding(state: ElementState) -> list[Graph]:
    """The graphs that have *state*, but for a table alone, which is in nobody's way."""
    return [one for one in GRAPHS.values() if state in one.behaviours and not one.alone]


def test_given_any_schema_when_its_own_statements_run_then_it_stays_consistent() -> None:
    assert all(
        go_together(graph, (state, state))
        for graph in GRAPHS.values()
        for state in graph.behaviours
    )


def test_given_an_element_when_it_is_added_or_dropped_as_public_then_never_consistent() -> None:
    assert adding(PUBLIC)
    assert not any(go_together(graph, (ABSENT, PUBLIC)) for graph in adding(PUBLIC))
    assert not any(go_together(graph, (PUBLIC, ABSENT)) for graph in adding(PUBLIC))


def test_given_an_element_when_it_is_added_as_delete_only_then_consistent() -> None:
    assert adding(DELETE_ONLY)
    assert all(go_together(graph, (ABSENT, DELETE_ONLY)) for graph in adding(DELETE_ONLY))


def test_given_delete_only_when_made_public_then_consistent_for_what_is_optional_alone() -> None:
    consistent = {
        graph.name for graph in adding(DELETE_ONLY) if go_together(graph, (DELETE_ONLY, PUBLIC))
    }

    assert consistent == {OPTIONAL_COLUMN.name, REFERRED_TABLE.name}
