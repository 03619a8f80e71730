"""All that SQL can say is printed, and read again as the same."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from metasrv_base.sql import commands as sql
from metasrv_base.sql.grammar.statements import statements
from metasrv_base.sql.printing.print_command import text_of
from metasrv_base.wire.api.changes import AlterRequest, SetDefault
from tests.metasrv_base.sql.drawn_commands import all_commands

WORDS = re.compile(r"\w+|'(?:[^']|'')*'|\"[^\"]+\"|\S|\s+")


def no_type(table: sql.QualifiedTable, column: str) -> None:
    return None


def read(text: str) -> list[sql.Command]:
    return [statement.command for statement in statements(text, no_type)]


@settings(max_examples=300)
@given(all_commands)
@pytest.mark.slow
def test_given_any_command_when_printed_then_it_is_read_as_the_same(command: sql.Command) -> None:
    assert read(text_of(command)) == [command]


@given(st.lists(all_commands, max_size=4))
def test_given_several_when_printed_in_one_text_then_they_are_read_in_order(
    commands: list[sql.Command],
) -> None:
    text = " ;\n-- it's a comment;\n ; /* and ; \" */ ".join(map(text_of, commands))
    assert read(text) == commands


@settings(max_examples=300)
@given(st.data(), all_commands)
@pytest.mark.slow
def test_given_a_text_with_words_changed_when_read_then_it_is_right_or_refused_with_its_place(
    data: st.DataObject, command: sql.Command
) -> None:
    """A text that is accepted means what its own print means: nothing was guessed or left out."""
    words = WORDS.findall(text_of(command))
    number = data.draw(st.integers(0, len(words) - 1))
    other = data.draw(
        st.sampled_from([*words, "", "NULL", "(", ")", ",", "-", "'", '"', ";", "1e"])
    )
    match data.draw(st.sampled_from(("replace", "insert", "drop", "swap"))):
        case "replace":
            words[number] = other
        case "insert":
            words.insert(number, other)
        case "drop":
            del words[number]
        case "swap":
            words[number - 1], words[number] = words[number], words[number - 1]
    must_be_whole("".join(words))


@example("drop table \0")
@example("create table t (a int primary key) partition by hash (a) partitions 99999999999999999999")
@given(st.text(max_size=60))
def test_given_any_text_when_read_then_it_is_right_or_refused_with_its_place(text: str) -> None:
    must_be_whole(text)


def must_be_whole(text: str) -> None:
    """*text* is read as what its print is read as; or refused, at a place in it."""
    try:
        commands = read(text)
    except Refused as refusal:
        error = refusal
    else:
        assert read("; ".join(map(text_of, commands))) == commands
        return
    assert error.code == "invalid-sql"
    line, column = error.facts["line"], error.facts["column"]
    assert isinstance(line, int)
    assert isinstance(column, int)
    lines = text.split("\n")
    assert 1 <= line <= len(lines)
    assert 1 <= column <= len(lines[line - 1]) + 1


def test_given_a_default_whose_type_is_known_then_it_is_read_by_it() -> None:
    (statement,) = statements(
        "alter table s.t alter c set default 1.50", lambda t, c: "decimal(4,2)"
    )
    operation = SetDefault(op="set_default", name="c", default="1.50")
    request = AlterRequest(operations=(operation,))
    assert statement.command == sql.AlterTableStatement(sql.QualifiedTable("t", "s"), request)


@pytest.mark.parametrize(
    ("clauses", "means"),
    [
        ("WITH (replicas = 3)", "REPLICAS 3"),
        ("WITH (min_in_sync = 1, replicas = 2)", "REPLICAS 2 MIN IN SYNC 1"),
        ("WITH (replicas = 2, comment = 'x')", "REPLICAS 2 WITH (comment = 'x')"),
    ],
)
def test_given_numbers_of_copies_among_options_then_they_are_clauses(
    clauses: str, means: str
) -> None:
    table = "CREATE TABLE t (id BIGINT PRIMARY KEY)"

    assert read(f"{table} {clauses}") == read(f"{table} {means}")
