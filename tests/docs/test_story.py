"""States, keys and steps in the stories exist in the code."""

import re
from pathlib import Path

import pytest

from keys.model.families import FAMILIES
from metasrv_base.elements.graph import Act
from metasrv_base.elements.graphs import INDEX
from procedures.kinds.registry import KINDS

STORY = (Path(__file__).parents[2] / "docs" / "story.md").read_text()
WORDS = {
    ("insert", ()): "no entry",
    ("insert", (Act.PUT,)): "puts the entry",
    ("delete", (Act.REMOVE,)): "removes the entry",
    ("update", (Act.REMOVE,)): "removes the old entry",
    ("update", (Act.REMOVE, Act.PUT)): "removes the old entry, puts the new one",
}
KEYS = re.findall(r"`(__[^`{}]+)`", STORY)


def test_given_the_states_of_an_index_then_the_story_says_what_each_statement_does() -> None:
    rows = []
    for state in INDEX.add[1:]:
        acts = INDEX.behaviours[state]
        cells = [
            state.value,
            WORDS["insert", acts.insert],
            WORDS["delete", acts.delete],
            WORDS["update", acts.update],
            "yes" if acts.visible else "no",
        ]
        rows.append(f"| {' | '.join(cells)} |")

    assert "\n".join(rows) in STORY


def test_given_the_states_of_an_index_then_the_picture_publishes_them_in_this_order() -> None:
    published = re.findall(r"P->>P: publish \d: ([a-z-]+)", STORY)

    assert published == [state.value for state in INDEX.add[1:]]


@pytest.mark.parametrize("text", KEYS)
def test_given_a_key_of_the_story_then_it_is_one_that_we_would_write(text: str) -> None:
    (family,) = [family for family in FAMILIES if family.claims(text.encode())]

    assert bytes(family.key.parse(text.encode())) == text.encode()


def test_given_the_kinds_of_the_story_then_each_is_registered() -> None:
    assert {"create_table", "failover_node", "failover_table", "create_index"} <= KINDS.keys()
    assert len(KEYS) >= 6
