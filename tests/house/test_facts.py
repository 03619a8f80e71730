"""Facts about a Python file are those of its text now, and a file is parsed once."""

import os
from pathlib import Path

from scripts.documents.facts import Facts, facts, facts_of

SOURCE = '''"""A file."""
import os.path
from a.b import c as d


class Row:
    number: int
    """Of a row."""


def count(rows, *, start):
    import inner
    total = start
    "not first, and a statement"
    return f(total, "an argument")
'''


def test_given_a_source_then_imports_classes_variables_and_docstrings_are_its_facts() -> None:
    source = facts_of(SOURCE)

    assert set(source.modules) == {"os.path", "a.b", "inner"}
    assert source.members == ("a.b.c",)
    assert source.classes == ("Row",)
    assert set(source.bound) == {"number", "rows", "start", "total"}
    assert set(source.texts) == {"A file.", "Of a row.", "not first, and a statement"}
    assert source.functions == ("count",)


def test_given_a_file_when_asked_again_then_it_is_not_parsed_again(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1")

    assert facts(file) is facts(file)


def test_given_a_file_when_it_changes_then_its_facts_are_the_new_ones(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1")
    before = facts(file)

    file.write_text("y = 1")
    os.utime(file, ns=(0, 0))

    assert (before.bound, facts(file).bound) == (("x",), ("y",))


def test_given_a_source_of_nothing_then_it_has_no_facts() -> None:
    assert facts_of("") == Facts((), (), (), (), (), ())
