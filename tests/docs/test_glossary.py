"""Every field term has one entry in the glossary, and the entry says where the term lives."""

import re
from pathlib import Path

import pytest

from scripts.documents.references import Checkout

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)

# S16.
FIELD_TERMS = {
    "region",
    "route",
    "leader",
    "follower",
    "epoch",
    "term",
    "revision",
    "lease",
    "node",
    "procedure",
    "kind",
    "step",
    "record",
    "fence",
    "placement",
}


def entries() -> list[tuple[str, str, str]]:
    """Term, meaning and place of every row, heads and rules left out."""
    rows: list[tuple[str, str, str]] = ROW.findall(PAGE.read_text())
    return [row for row in rows if row[1] != "meaning" and not row[0].startswith("---")]


def test_given_the_glossary_then_every_field_term_has_one_entry() -> None:
    terms = [term for term, _, _ in entries()]

    assert len(terms) == len(set(terms))
    assert set(terms) >= FIELD_TERMS


def test_given_the_glossary_then_every_entry_says_where() -> None:
    assert [term for term, _, where in entries() if "`" not in where] == []


@pytest.mark.slow
def test_given_the_glossary_then_every_bare_name_is_one_of_the_code() -> None:
    """Dotted names and paths are looked up in every document (test_references.py)."""
    spans = [span for _, _, where in entries() for span in re.findall(r"`(\w+)`", where)]

    assert set(spans) - Checkout(ROOT).members == set()
