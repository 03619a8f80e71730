"""Each rule says what goes wrong without it, and which code and test hold it, or is not built."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.model.copies.rules import Rules

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`tests/[\w/]+\.py::test_\w+`")
MODEL = "`tests/model/"
ROWS = re.findall(
    r"^\| (G\d+) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|$",
    (ROOT / "docs/guarantees.md").read_text(),
    re.MULTILINE,
)
RULES = re.findall(
    r"^### (P\d\.\d+) (.+?)\n(.*?)(?=^##|\Z)",
    (ROOT / "docs/protocols.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("name", "title", "text"), RULES, ids=[rule[0] for rule in RULES])
def test_given_a_rule_of_the_protocols_then_it_has_a_failure_code_and_test(
    name: str, title: str, text: str
) -> None:
    if title.endswith("(not built)"):
        assert "\n- Code: " not in text, name
        assert all(test.startswith(MODEL) for test in TEST.findall(text)), name
        return

    assert "\n- Without it: " in text, name
    assert "\n- Code: " in text, name
    assert TEST.search(text.partition("\n- Tests: ")[2]), name


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_given_a_guarantee_then_its_status_is_told_and_a_test_shows_it(
    row: tuple[str, str, str, str, str, str],
) -> None:
    status, shown = row[4], row[5]
    word = re.match(r"works|part: \S|not built", status)

    assert word is not None, status
    if word[0] == "not built":
        assert all(test.startswith(MODEL) for test in TEST.findall(shown))
    else:
        assert TEST.search(shown)


def test_given_the_pages_then_none_of_their_rules_is_passed_over() -> None:
    assert len(ROWS) == 58
    assert len(RULES) == 53


def test_given_the_rules_of_the_model_of_copies_then_the_protocols_name_each() -> None:
    named = [
        rule
        for _, _, text in RULES
        for line in re.findall(r"\n- Model: (.*?)(?=\n- |\n\n|\Z)", text, re.DOTALL)
        for rule in re.findall(r"`(\w+)`", line)
    ]

    assert sorted(named) == sorted(field.name for field in fields(Rules))
