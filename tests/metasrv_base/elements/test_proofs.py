"""A graph is proved as it is, or not at all."""

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from keys.model.elements import Element, graph_of
from keys.model.tables import Column, Constraint, ConstraintKind, Index
from metasrv_base.elements.graph import Act, Behaviour, Graph, Reorg
from metasrv_base.elements.graphs import DELETE_ONLY, GRAPHS, INDEX, WRITE_ONLY
from metasrv_base.elements.page import prove
from metasrv_base.elements.proofs import digest, is_proved
from metasrv_base.elements.proved import PROVED
from procedures.kinds.alter.alter_table import ALTER_TABLE
from procedures.kinds.registry import KINDS
from procedures.steps import transitions
from tests.metasrv_base.elements.proof.faulty import behaving

CHANGES: dict[str, Callable[[Graph], Graph]] = {
    "an act more": lambda graph: behaving(
        graph, WRITE_ONLY=replace(graph.behaviours[WRITE_ONLY], update_elsewhere=(Act.PUT,))
    ),
    "an act less": lambda graph: behaving(graph, DELETE_ONLY=Behaviour(delete=(Act.REMOVE,))),
    "it is read earlier": lambda graph: behaving(
        graph, WRITE_ONLY=replace(graph.behaviours[WRITE_ONLY], visible=True)
    ),
    "another way in": lambda graph: replace(graph, add=(graph.add[0], DELETE_ONLY, graph.add[-1])),
    "no reorg": lambda graph: replace(graph, reorg=Reorg.NONE),
    "another name": lambda graph: replace(graph, name="unique-index"),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=list(GRAPHS))
def test_given_the_graphs_then_each_is_proved_as_it_is(graph: Graph) -> None:
    assert is_proved(graph, PROVED)


@pytest.mark.parametrize("name", CHANGES)
def test_given_a_graph_that_was_changed_when_asked_then_it_is_not_proved(name: str) -> None:
    changed = CHANGES[name](INDEX)

    assert not is_proved(changed, PROVED)


@pytest.mark.parametrize("name", CHANGES)
def test_given_a_graph_that_is_not_proved_when_a_kind_names_it_then_there_is_no_such_kind(
    name: str,
) -> None:
    changed = CHANGES[name](INDEX)

    with pytest.raises(AssertionError, match="alter_table: not proved"):
        replace(ALTER_TABLE, graphs=(changed,))


def test_given_the_kinds_then_each_that_publishes_states_names_its_graphs() -> None:
    publishing = {
        kind.name
        for kind in KINDS.values()
        if transitions.publish in vars(sys.modules[kind.locks.__module__]).values()
    }

    assert ALTER_TABLE.name in publishing
    assert all(KINDS[name].graphs for name in publishing)


def test_given_any_element_that_is_stored_then_the_kind_that_moves_it_names_its_graph() -> None:
    column = Column(id=1, name="a", type="int64", nullable=True)
    elements: list[Element] = [
        column,
        column.model_copy(update={"nullable": False}),
        column.model_copy(update={"replaces": 2}),
        column.model_copy(update={"replaced_by": 2}),
        *(Index(id=1, name="i", columns=(1,), unique=unique) for unique in (False, True)),
        *(Constraint(id=1, name="c", kind=kind, columns=(1,)) for kind in ConstraintKind),
    ]

    assert {graph_of(one).name for one in elements} == {one.name for one in ALTER_TABLE.graphs}


def test_given_a_graph_that_says_the_same_when_asked_then_it_is_proved() -> None:
    same = replace(INDEX, behaviours=dict(reversed(list(INDEX.behaviours.items()))))

    assert digest(same) == digest(INDEX)
    assert is_proved(same, PROVED)


def test_given_a_graph_that_is_not_consistent_when_proved_then_it_fails_with_the_trace() -> None:
    changed = CHANGES["an act less"](INDEX)

    with pytest.raises(AssertionError, match=r"delete-only.*do not go together"):
        prove(changed)


@pytest.mark.slow
def test_given_a_graph_whose_reorg_is_left_out_when_proved_then_it_fails_with_the_trace() -> None:
    changed = CHANGES["no reorg"](INDEX)

    with pytest.raises(AssertionError, match=r"(?s)add index: missing after.*publishes public"):
        prove(changed)
