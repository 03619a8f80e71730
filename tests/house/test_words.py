"""Checks of words: class names are unique, vague names grow no more, docstrings open plainly."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.documents.facts import Facts, facts, facts_of
from scripts.documents.references import PACKAGES
from tests.house.ratchets import (
    EVERYWHERE,
    RATCHETS,
    Ratchet,
    bindings,
    counted,
    excess,
    fragments,
    lowered,
    openings,
)

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
SECTION = "## Names of several classes"
ROW = re.compile(r"^- `(\w+)` \((\d+)\):", re.MULTILINE)
SHARED_MAX = 4
"""Names in the glossary's list. It only falls."""


def listed() -> dict[str, int]:
    """Name -> how many classes have it, as the glossary says."""
    section = GLOSSARY.read_text().partition(SECTION)[2].partition("\n## ")[0]
    return {name: int(count) for name, count in ROW.findall(section)}


def classes(sources: Mapping[str, Facts]) -> dict[str, list[str]]:
    """Name -> the files that define a class of that name, one for each definition."""
    defined: dict[str, list[str]] = defaultdict(list)
    for file, source in sources.items():
        for name in source.classes:
            defined[name].append(file)
    return defined


def shared(sources: Mapping[str, Facts]) -> dict[str, list[str]]:
    return {name: files for name, files in classes(sources).items() if len(files) > 1}


def product() -> dict[str, Facts]:
    files = [file for top in PACKAGES for file in sorted((ROOT / top).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): facts(file) for file in files}


@pytest.mark.slow
def test_given_the_product_then_no_two_classes_share_a_name_but_those_listed() -> None:
    sharing = shared(product())

    assert {name: len(files) for name, files in sharing.items()} == listed(), sharing
    assert len(sharing) <= SHARED_MAX


def test_given_a_class_in_two_files_then_both_are_named() -> None:
    sources = {"a.py": "class Line: ...", "b.py": "def f():\n    class Line: ...", "c.py": "x = 1"}

    assert shared({file: facts_of(text) for file, text in sources.items()}) == {
        "Line": ["a.py", "b.py"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("ratchet", RATCHETS, ids=lambda ratchet: ratchet.name)
def test_given_every_file_then_it_has_no_more_faults_of_words_than_before(
    ratchet: Ratchet,
) -> None:
    more = excess(ratchet.allowed(), ratchet.counted())

    assert more == {}, "style.md, Names and Prose; file: (faults, faults allowed)"


@pytest.mark.slow
def test_given_every_file_then_no_docstring_has_a_banned_opening() -> None:
    assert counted(EVERYWHERE, openings) == {}, "style.md, Prose"


@pytest.mark.slow
def test_given_the_product_then_no_docstring_begins_with_a_fragment() -> None:
    assert counted(PACKAGES, fragments) == {}, "style.md, Prose"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("found = 1", 1),
        ("for one in rows: print(one)", 1),
        ("def f(at, *, seen): return at", 2),
        ("lambda place: place", 1),
        ("record = found", 0),
    ],
)
def test_given_a_source_then_bindings_of_vague_names_are_counted(source: str, count: int) -> None:
    assert bindings(facts_of(source)) == count


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('"""What a file holds."""', 1),
        ('class A:\n    """Which\n    one."""\n    x: int\n    """`Of` a field."""', 2),
        ('def f():\n    """\n    How it ends."""', 1),
        ('async def f():\n    """Those, and that of others."""', 1),
        ('"""Whose lease it is."""', 0),
        ('"""Returns what f(x) is."""', 0),
        ('text = "What is a string."', 0),
        ("# What is a comment.", 0),
    ],
)
def test_given_a_source_then_docstrings_with_a_banned_opening_are_counted(
    source: str, count: int
) -> None:
    assert openings(facts_of(source)) == count


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('def f(x):\n    """*x*: of versions. Groups them."""', 1),
        ('def f(x, y):\n    """*x* and *y*: versions."""', 1),
        ('def f():\n    """None: any."""', 1),
        ('"""By name."""', 1),
        ('class A:\n    """In order."""\n    x: int\n    """None: any."""', 2),
        ('class A:\n    x: int | None\n    """The bound; None for any."""', 0),
        ('def f(x):\n    """*x* with its entries."""', 0),
        ('def f():\n    """Yields rows, by name."""', 0),
        ('"""Bytes of a file."""', 0),
    ],
)
def test_given_a_source_then_docstrings_that_begin_with_a_fragment_are_counted(
    source: str, count: int
) -> None:
    assert fragments(facts_of(source)) == count


def test_given_a_file_with_a_new_vague_name_then_it_exceeds_the_ratchet() -> None:
    counts = {"new.py": bindings(facts_of("found = 1")), "old.py": 2}

    assert excess({"old.py": 2}, counts) == {"new.py": (1, 0)}


def test_given_fewer_faults_then_fewer_are_allowed_and_never_more() -> None:
    limits = {"fewer.py": 3, "more.py": 1, "none.py": 2}

    assert lowered(limits, {"fewer.py": 2, "more.py": 5}) == {"fewer.py": 2, "more.py": 1}
