"""Each rule says what goes wrong without it, and which code and test hold it, or is not built."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`tests/[\w/]+\.py::test_\w+`")
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
        assert not TEST.search(text), name
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
    assert bool(TEST.search(shown)) == (word[0] != "not built")


def test_given_the_pages_then_none_of_their_rules_is_passed_over() -> None:
    assert len(ROWS) == 50
    assert len(RULES) == 46
