"""Every rule, decision and page that a file cites exists in this checkout."""

from pathlib import Path

import pytest

from scripts.documents.citations import PAGES, Rules, cited_files

ROOT = Path(__file__).parents[2]
RULES = Rules(ROOT)
EXAMPLES = {Path(__file__), Path(__file__).with_name("test_references.py")}
"""Files that name things that do not exist."""


@pytest.mark.slow
def test_given_every_file_then_all_that_it_cites_exists() -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {cited}"
        for path in cited_files(ROOT)
        if path not in EXAMPLES
        for cited in RULES.missing(path.read_text())
    ]

    assert not faults, "\n".join(faults)


def test_given_the_pages_of_rules_then_none_is_left_out_of_their_numbers() -> None:
    assert {f"P{number}" for number in range(1, 9)} <= RULES.names
    assert {f"G{number}" for number in range(1, 51)} <= RULES.names
    assert {f"I{number}" for number in range(1, 18)} <= RULES.names


def test_given_the_pages_of_rules_then_each_number_is_defined_once() -> None:
    for page, pattern in PAGES.values():
        numbers = RULES.defined(page, pattern)

        assert len(numbers) == len(set(numbers)), page


@pytest.mark.parametrize(
    "text",
    [
        "(P9)",
        "see P1.12.",
        "G59 holds",
        "I19",
        "S40",
        "docs/decisions/9999 has the trace",
        "(decisions/0085-another-name.md)",
        "docs/nowhere.md P3",
        "PROTOCOLS P1",
        "(GUARANTEES, harness, rule 2)",
        "DESIGN 3",
        "STYLE.md",
        "SEEDS 1.5",
        "as API.md has it",
        "`research/reliability.md`, finding 1",
        "reviews/house.md",
        "`../shared/anything`",
    ],
)
def test_given_what_lies_outside_or_nowhere_when_cited_then_it_is_missing(text: str) -> None:
    assert len(RULES.missing(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "P1, P1.10 and P8; G1 and G50 (docs/protocols.md P3)",
        "docs/decisions/0088 has the trace; decisions/0085-what-a-registration-says.md",
        "make sim SEEDS=50, SEEDS = 3, STYLES, p99, G1-G3, 2.P1",
        "https://example.org/research/page",
    ],
)
def test_given_what_is_here_when_cited_then_nothing_is_missing(text: str) -> None:
    assert RULES.missing(text) == []
