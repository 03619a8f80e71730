"""Placeholders of statements: where they are, and that no value ends its constant."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metasrv.dbapi.errors import ProgrammingError
from metasrv.dbapi.placeholders import insert_template, template
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Refused
from metasrv_base.sql.rows.row_commands import SelectRows
from metasrv_base.sql.rows.row_grammar import row_statements
from metasrv_base.sql.split import split
from metasrv_base.sql.tokens import SqlSort, SqlToken, tokens

PIECES = (
    *"'\"?;-/*\\xX\r\n\t\0 é",
    "--",
    "/*",
    "*/",
    "''",
    "'; drop table t; --",
    "information_schema",
    " from information_schema.tables",
    "E'",
    "$$",
    "NULL",
    "\u2019",
    "\u2028",
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join)
FRAGMENTS = st.lists(
    st.sampled_from((*PIECES, "a", "select ", " = ", "(", ")", "'text'", '"name"', "5", "-- c\n")),
    max_size=5,
).map("".join)


@pytest.mark.parametrize(
    ("operation", "pieces"),
    [
        ("select 1", ["select 1"]),
        ("a = ? and b = ?", ["a = ", " and b = ", ""]),
        ("'?' = ? -- ?", ["'?' = ", " -- ?"]),
        ('"?" /* ? */ ?', ['"?" /* ? */ ', ""]),
        ("'it''s ?' ?-- x\n?", ["'it''s ?' ", "-- x\n", ""]),
        ("-?", ["-", ""]),
    ],
)
def test_given_a_statement_then_placeholders_stand_outside_quotes_and_comments(
    operation: str, pieces: list[str]
) -> None:
    assert list(template(operation).pieces) == pieces


@pytest.mark.parametrize(
    ("operation", "reason"),
    [("select '?", "What ' begins at character 8"), ('"a', 'What " begins'), ("a /*", r"What /\*")],
)
def test_given_what_does_not_end_then_its_place_is_told(operation: str, reason: str) -> None:
    with pytest.raises(ProgrammingError, match=reason):
        template(operation)


@pytest.mark.parametrize("values", [(), (1, 2), "x", {"a": 1}, {1}, b"x"])
def test_given_other_parameters_than_there_are_placeholders_then_nothing_is_bound(
    values: Sequence[object],
) -> None:
    with pytest.raises(ProgrammingError):
        template("a = ?").bound(values)


@given(HOSTILE)
@pytest.mark.slow
def test_given_any_text_when_bound_then_the_statement_has_it_as_one_constant(value: str) -> None:
    operation = "select b from t where b = ? and c > ? limit 5"
    text = template(operation).bound([value, "end"])

    (statement,) = row_statements(text, lambda table: None)

    assert isinstance(statement.command, SelectRows)
    assert [each.value for each in statement.command.conditions] == [value, "end"]
    assert statement.command.limit == 5


def shape(source: str) -> list[tuple[SqlSort, str]]:
    """The tokens of all statements; a semicolon is a mark."""
    parts: list[tuple[SqlSort, str]] = []
    for statement in split(source):
        cut: Sequence[SqlToken] = tokens(statement)
        parts += [(token.sort, token.text) for token in cut]
    return parts


@given(st.tuples(FRAGMENTS, FRAGMENTS), HOSTILE)
@example(("a = -", ""), "5")
@example(("x", ""), "00")
@example(("'a'", "'b'"), "c")
def test_given_any_text_and_any_statement_then_only_that_constant_differs(
    around: tuple[str, str], value: str
) -> None:
    """Compared with a text that no grammar takes for anything else."""
    try:
        bound = template("?".join(around))
        plain = bound.bound(["plain"] * bound.parameters)
        expected = shape(plain)
    except (ProgrammingError, Refused):
        return  # it is no statement with any value

    found = shape(bound.bound([value] * bound.parameters))

    assert [sort for sort, _ in found] == [sort for sort, _ in expected]
    for (sort, is_text), (_, was) in zip(found, expected, strict=True):
        assert is_text == (value if (sort, was) == (SqlSort.TEXT, "plain") else was)


def test_given_a_negative_number_behind_a_minus_then_it_begins_no_comment() -> None:
    bound = template("select * from t where a = -? and id = ?").bound([-5, 1])

    with pytest.raises(Refused, match="expected a number"):
        list(row_statements(bound, lambda table: None))


@pytest.mark.parametrize(
    ("operation", "head", "pieces"),
    [
        ("insert into t values (?, ?)", "insert into t values ", ["(", ", ", ")"]),
        (
            "INSERT INTO t (a, b) VALUES(?, DEFAULT); -- x",
            "INSERT INTO t (a, b) VALUES",
            ["(", ", DEFAULT)"],
        ),
        ("/* ? */ insert into t values (?)", "/* ? */ insert into t values ", ["(", ")"]),
        ("insert into t values (?, /* c */ 'values (')", "insert into t values ", None),
    ],
)
def test_given_an_insert_of_one_row_then_its_row_may_be_repeated(
    operation: str, head: str, pieces: list[str] | None
) -> None:
    insert = insert_template(operation)

    assert insert is not None
    assert insert.head == head
    assert pieces is None or list(insert.row.pieces) == pieces


@pytest.mark.parametrize(
    "operation",
    [
        "",
        ";",
        "insert",
        "insert into t values",
        "update t set a = ? where id = ?",
        "insert into t values (?), (?)",
        "insert into t values (?) values (?)",
        "insert into ? values (?)",
        "insert into t values (?) returning (a)",
        "select * from t where values (?)",
    ],
)
def test_given_another_statement_then_it_is_no_insert_of_one_row(operation: str) -> None:
    assert insert_template(operation) is None


def test_given_a_text_of_megabytes_then_the_work_grows_with_its_length_alone() -> None:
    """Where each piece is copied for each word, these 2.4 MB take minutes, else about a second."""
    clock, text = SystemClock(), "insert into t values " + "(1, 'abc', 2), " * 160_000
    begun_ms = clock.mono_ms()

    assert template(text + "(?)").bound([3]) == text + "( 3 )"

    assert clock.mono_ms() - begun_ms < 30_000
