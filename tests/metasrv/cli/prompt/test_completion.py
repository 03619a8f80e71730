"""Completions of the word before the cursor."""

from typing import Any

import pytest

from metasrv.cli.prompt.completion import CANDIDATES_MAX, FIRST_WORDS, WORDS, candidates
from metasrv.cli.prompt.names import CatalogNames, TableNames
from metasrv.cli.prompt.shortcuts import NameScope
from metasrv_base.sql.grammar import statements as grammar

HERE = NameScope("main", "public")
NAMES = CatalogNames(
    (("main", "hr"), ("main", "public"), ("shop", "public")),
    (
        TableNames("main", "public", "cities", ("id", "name", "People"), ("by_name",)),
        TableNames("main", "public", "a b", ("x", "order", "primary"), ("check",)),
        TableNames("main", "hr", "staff", ("id", "born"), ("by_born",)),
        TableNames("shop", "public", "orders", ("price",)),
    ),
)


def _texts(before: str, session: NameScope = HERE) -> list[str]:
    return [each.text for each in candidates(before, NAMES, session)]


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("show tables; tr", ["truncate table"]),
        ("select * from ci", ["cities"]),
        ("select * from a", ['"a b"', "add", "after", "and"]),
        ("select * from hr.", ["hr.staff"]),
        ("select * from shop", ["shop.public.orders"]),
        ("select na", ["name"]),
        ("update cities set Peo", ["People"]),
        ("select * from staff where bo", ["born", "boolean"]),
        ("drop index by_n", ["by_name"]),
        ('select * from "a b', ['"a b"']),
        ('select x from "a b" where ord', ['"order"', "order"]),
        ('alter table "a b" drop column pri', ['"primary"', "primary"]),
        ("drop index che", ['"check"', "check"]),
        ("select * from cities where name = 'x' and na", ["name"]),
        ("drop schema h", ["hr", "hash"]),
        (r"\t", [r"\timing"]),
        (r"\d ci", ["cities"]),
        (r"\dt h", ["hr"]),
        (r"\q", [r"\q"]),
    ],
)
def test_given_a_word_then_what_begins_so_is_offered(before: str, texts: list[str]) -> None:
    assert _texts(before)[: len(texts)] == texts


def test_given_a_word_then_what_stands_before_the_cursor_is_replaced() -> None:
    assert candidates("select * from ci", NAMES, HERE)[0].length == 2
    assert candidates('select * from "a', NAMES, HERE)[0].length == 2


def test_given_a_string_that_is_open_then_nothing_is_offered() -> None:
    assert _texts("select * from cities where name = 'ci") == []


def test_given_another_schema_then_its_tables_are_offered_by_their_names() -> None:
    assert "staff" in _texts("select * from st", NameScope("main", "hr"))
    assert "staff" not in _texts("select * from st")


def test_given_case_then_names_keep_theirs() -> None:
    assert "People" not in _texts("select peo")


def test_given_no_names_then_words_of_the_language_are_offered() -> None:
    assert [each.text for each in candidates("cre", CatalogNames(), HERE)] == ["create"]


@pytest.mark.parametrize(("before", "looks_max"), [("select * from t", 102), ("select c", 102)])
def test_given_many_names_then_some_are_offered_and_no_more_are_looked_at(
    before: str, looks_max: int
) -> None:
    looks = 0

    class Table(TableNames):
        def __getattribute__(self, name: str) -> Any:
            nonlocal looks
            looks += name == "schema"
            return super().__getattribute__(name)

    many = tuple(Table("main", "public", f"t{n}", (f"c{n}",)) for n in range(10_000))

    offered = candidates(before, CatalogNames((), many), HERE)

    assert len(offered) == CANDIDATES_MAX
    assert looks <= looks_max


def test_given_the_grammar_then_each_word_that_begins_a_statement_is_offered() -> None:
    words = {word.split()[0] for word in FIRST_WORDS}
    rows = {"SELECT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "ALTER"}

    begin = {first[0] for first in grammar._STATEMENTS} - {"DESC"}
    assert begin | rows == words
    second = {first[1] for first in grammar._STATEMENTS if len(first) > 1}
    assert second <= {part for word in (*WORDS, *FIRST_WORDS) for part in word.split()}
