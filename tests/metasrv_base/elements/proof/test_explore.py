"""Every graph under the protocol of the product, in every order of events: it holds."""

from dataclasses import replace
from functools import cache

import pytest

from metasrv_base.elements.graphs import (
    GRAPHS,
    INDEX,
    OPTIONAL_COLUMN,
    REQUIRED_COLUMN,
    UNIQUE_INDEX,
)
from metasrv_base.elements.page import changes_of
from metasrv_base.elements.proof.explore import Exploration, explore
from metasrv_base.elements.proof.journey import Direction, ProofChange, journey
from metasrv_base.elements.proof.protocol import PRODUCT, Protocol
from metasrv_base.elements.proved import PROVED

ADD, DROP = Direction.ADD, Direction.DROP
IN_TIME = replace(PRODUCT, expires=False, lets_go=False)

TOGETHER: dict[str, tuple[ProofChange, Protocol]] = {
    "two adds, of which one waits for the other": (
        ProofChange((INDEX, OPTIONAL_COLUMN), (ADD, ADD)),
        IN_TIME,
    ),
    "two adds with a reorg each": (ProofChange((INDEX, REQUIRED_COLUMN), (ADD, ADD)), IN_TIME),
    "an add that may fail, and a drop": (
        ProofChange((UNIQUE_INDEX, OPTIONAL_COLUMN), (ADD, DROP)),
        IN_TIME,
    ),
    "two drops": (ProofChange((OPTIONAL_COLUMN, INDEX), (DROP, DROP)), IN_TIME),
}


CHANGES = {change.name: change for graph in GRAPHS.values() for change in changes_of(graph)}


@cache
def explored(name: str) -> Exploration:
    """Two tests look at one."""
    return explore(CHANGES[name])


@pytest.mark.crash
@pytest.mark.case("online 77")
@pytest.mark.parametrize("name", CHANGES)
def test_given_a_kind_of_element_when_every_state_is_visited_then_no_row_is_ever_wrong(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change = CHANGES[name]

    found = explored(name)

    assert found.fault is None, str(found)
    assert found.published == {str(node) for node in journey(change)}
    for graph, way in zip(change.graphs, change.ways, strict=True):
        proof = PROVED[graph.name]
        assert found.states == (proof.add_states if way is ADD else proof.drop_states)
    with capsys.disabled():
        print(f"\n{found}", end="")


@pytest.mark.crash
@pytest.mark.parametrize("name", TOGETHER)
def test_given_a_change_of_two_elements_when_every_state_is_visited_then_they_flip_as_one(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, protocol = TOGETHER[name]

    found = explore(change, protocol)

    assert found.fault is None, str(found)
    assert found.published == {str(node) for node in journey(change)}
    with capsys.disabled():
        print(f"\n{found}", end="")


@pytest.mark.crash
def test_given_a_unique_index_when_it_is_explored_then_everything_that_may_happen_does() -> None:
    forms = {
        "{}: loads",
        "{}: ends its transaction",
        "sends {}, lets it go",
        "what was sent arrives",
        "what was sent is lost",
        "is silent",
        "registers anew",
        "nobody uses",
        "raises the floor",
        "owner: publishes",
        "owner: undoes",
        "a new owner",
        "was read as {}",
        "a duplicate",
    }

    found = explored("add unique-index")

    assert not [form for form in forms if not any(form in event for event in found.happened)]
    assert len(found.happened) == len(forms) + 1  # and a server's statement


def test_given_an_add_and_a_drop_in_one_change_then_one_version_takes_both_over() -> None:
    nodes = journey(ProofChange((UNIQUE_INDEX, OPTIONAL_COLUMN), (ADD, DROP)))

    assert [str(node) for node in nodes if node.flips] == [
        "absent+public > delete-only+write-only > write-only+write-only"
    ]
    assert {str(node) for node in nodes if node.onward is None} == {
        "absent+public > delete-only+write-only > write-only+write-only > public+delete-only"
        " > public+absent",
        "absent+public > delete-only+write-only > absent+public",
        "absent+public > delete-only+write-only > write-only+write-only > delete-only+public"
        " > absent+public",
    }
