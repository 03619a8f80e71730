"""Shortcuts: what they are read as, and the statements that they stand for."""

import pytest

from metasrv.cli.prompt.shortcuts import (
    HELP,
    BadShortcut,
    NameScope,
    Shortcut,
    help_lines,
    name_parts,
    session_of,
    shortcut_of,
    sql_of,
)
from metasrv_base.sql.commands import DescribeTable
from metasrv_base.sql.grammar.statements import statements

HERE = NameScope("main", "public")


def _sql(text: str, session: NameScope = HERE) -> str:
    sql = sql_of(shortcut_of(text), session)
    assert sql is not None
    return sql


@pytest.mark.parametrize(
    ("text", "shortcut"),
    [
        (r"\d", Shortcut(r"\d", "")),
        (r" \d  hr.staff ; ", Shortcut(r"\d", "hr.staff")),
        (r"\watch 5", Shortcut(r"\watch", "5")),
        (r"\i a file.sql", Shortcut(r"\i", "a file.sql")),
    ],
)
def test_given_a_line_then_it_is_read(text: str, shortcut: Shortcut) -> None:
    assert shortcut_of(text) == shortcut


@pytest.mark.parametrize("text", ["\\", r"\z", r"\D", r"\x on", r"\q now", r"\i", r"\c", r"\l a"])
def test_given_a_line_that_means_nothing_then_it_is_refused(text: str) -> None:
    with pytest.raises(BadShortcut):
        shortcut_of(text)


@pytest.mark.parametrize(
    "text", [r"\d", r"\dt", r"\dt hr", r"\dn", r"\di", r"\di hr.staff", r"\l", r'\d main.hr."a b"']
)
def test_given_a_shortcut_then_its_statements_are_of_the_language(text: str) -> None:
    read = list(statements(_sql(text, NameScope("main", "it's")), lambda *_: None))

    assert len(read) == (3 if " " in text and text.startswith(r"\d ") else 1)


def test_given_a_name_then_the_statements_are_about_it() -> None:
    assert "table_schema = 'hr' AND table_name = 'a''b'" in _sql('\\d hr."a\'b"')
    assert "table_catalog = 'x' AND table_schema = 'hr'" in _sql(r"\dt x.hr")
    assert "table_schema = 'public' AND table_name = 'staff'" in _sql(r"\di staff")
    assert "table_name = " not in _sql(r"\di")


@pytest.mark.parametrize("name", ["t;DROP/**/TABLE/**/x", "t'", "in", "t--", 'main."a;b".t'])
def test_given_any_name_then_a_table_is_described_and_nothing_else(name: str) -> None:
    described, *others = statements(_sql(rf"\d {name}"), lambda *_: None)

    assert isinstance(described.command, DescribeTable)
    assert len(others) == 2


@pytest.mark.parametrize(
    ("text", "parts"),
    [("t", ("t",)), ("a.b.c", ("a", "b", "c")), ('a."b.""c"', ("a", 'b."c'))],
)
def test_given_a_name_then_its_parts_are_without_quotes(text: str, parts: tuple[str, ...]) -> None:
    assert name_parts(text, most=3) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a b", 'a"b', "a.b.c.d", '"a', "a;b c"])
def test_given_no_name_then_it_is_refused(text: str) -> None:
    with pytest.raises(BadShortcut):
        name_parts(text, most=3)


def test_given_a_schema_then_the_session_is_in_it() -> None:
    assert session_of("hr", HERE) == NameScope("main", "hr")
    assert session_of("shop.hr", HERE) == NameScope("shop", "hr")


def test_given_the_help_then_every_shortcut_has_a_line() -> None:
    assert len(help_lines()) == len(HELP)
    assert {line.split()[0] for line in help_lines()} == {form.split()[0] for form in HELP}
