"""Statements about rows: what is read, and where each refusal points."""

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from metasrv_base.errors import Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.rows.row_commands import (
    DeleteRow,
    ExplainRows,
    InsertRows,
    RowCommand,
    SelectRows,
    UpdateRow,
)
from metasrv_base.sql.rows.row_grammar import row_statements
from tests.metasrv_base.sql.rows.drawn_rows import commands, layout_of, layouts, text_of

INT = ColumnType("int64")
PLAIN = layout_of(("id", INT), ("at", INT), ("name", ColumnType("string")), key=2)

REFUSALS: dict[str, tuple[int, str]] = {
    # statements
    "with x as (select 1) select * from x": (1, "SELECT, INSERT, UPDATE, DELETE, EXPLAIN; this is"),
    "drop table t": (1, "SELECT, INSERT, UPDATE, DELETE"),
    "explain explain delete from t where id = 1": (9, "SELECT, INSERT, UPDATE, DELETE; this is"),
    "copy t from 'x'": (1, "no query engine"),
    # INSERT
    "insert t values (1)": (8, "INTO"),
    "insert into t select * from u": (15, "VALUES; this is no query engine"),
    "insert into t (id, id) values (1, 2)": (20, "each column once"),
    "insert into t (id, nam) values (1, 2)": (20, "a column of c.s.t"),
    "insert into t values (1, 2)": (22, "3 values: of id, at, name"),
    "insert into t values (1, 2, 'x', 4)": (34, ") after 3 values"),
    "insert into t values (1, 2, upper('x'))": (29, "a constant"),
    "insert into t values (1 + 1, 2, 'x')": (25, "a constant alone; this is no query engine"),
    "insert into t values (1, 2, name)": (29, "a constant"),
    "insert into t values (1, 2, ?)": (29, "a word, a name, a number"),
    "insert into t values (1, 2, 'x') on conflict do nothing": (
        34,
        "the end of the statement",
    ),
    "insert into t values (1, 2, 'x') returning id": (34, "no query engine"),
    # UPDATE
    "update t set name = 'x'": (24, "WHERE and the primary key of one row"),
    "update t set id = 1 where id = 1 and at = 2": (14, "no column of the primary key"),
    "update t set name = 'x', name = 'y' where id = 1 and at = 2": (26, "each column once"),
    "update t set name = 'x' where id = 1": (37, "AND at = .., the rest of the primary key"),
    "update t set name = 'x' where id = 1 and name = 'y'": (42, "= once for each column"),
    "update t set name = 'x' where id > 1 and at = 2": (31, "= once for each column"),
    "update t set name = 'x' where id = 1 and id = 2": (42, "= once for each column"),
    "update t set name = name where id = 1": (21, "a constant"),
    # DELETE
    "delete t where id = 1": (8, "FROM"),
    "delete from t": (14, "WHERE and the primary key of one row"),
    "delete from t where id in (1, 2)": (24, "=, <, <=, >, >= or BETWEEN; this is no query"),
    # SELECT
    "select from t": (8, "a column"),
    "select count(*) from t": (13, ", or FROM; this is no query engine"),
    "select id + 1 from t": (11, "no query engine"),
    "select id as x from t": (11, "no query engine"),
    "select distinct id from t": (8, "no query engine"),
    "select t.id from t": (9, "no query engine"),
    "select id, nme from t": (12, "a column of c.s.t"),
    "select * from t, u": (16, "the end of the statement"),
    "select * from t join u on t.id = u.id": (17, "no query engine"),
    "select * from (select 1)": (15, "a table"),
    "select * from t where id": (25, "=, <, <=, >, >= or BETWEEN"),
    "select * from t where id <> 1": (27, "=; this is no query engine"),
    "select * from t where id != 1": (26, "no query engine"),
    "select * from t where id is null": (26, "no query engine"),
    "select * from t where name like 'a'": (28, "no query engine"),
    "select * from t where id < = 1": (28, "a constant"),
    "select * from t where 1 = id": (23, "a column"),
    "select * from t where id = null": (28, "nothing is = NULL"),
    "select * from t where id = 1 or id = 2": (30, "no query engine"),
    "select * from t where not id = 1": (23, "a column; this is no query engine"),
    "select * from t where (id = 1)": (23, "a column; this is no query engine"),
    "select * from t where id between 1": (35, "AND"),
    "select * from t where id = -": (29, "a number"),
    "select * from t where id = 1 group by id": (30, "no query engine"),
    "select * from t order by id desc": (29, "ASC"),
    "select * from t order by 1": (26, "a column"),
    "select * from t limit 10001": (23, "from 0 to 10000"),
    "select * from t limit -1": (23, "from 0 to 10000"),
    "select * from t limit 1 offset 5": (25, "no query engine"),
    f"select * from t limit {'9' * 5000}": (23, "from 0 to 10000"),
    f"select * from t where id = {'9' * 5000}": (28, "a number of at most 400 characters"),
}


def read(text: str, layout: Layout | None = PLAIN) -> list[RowCommand]:
    return [each.command for each in row_statements(text, lambda table: layout)]


@pytest.mark.parametrize("text", REFUSALS, ids=lambda text: text[:50])
def test_given_a_text_that_is_wrong_then_the_refusal_says_where_and_what_is_right(
    text: str,
) -> None:
    column, expected = REFUSALS[text]

    with pytest.raises(Refused) as refused:
        read(text)

    facts = refused.value.facts
    assert refused.value.code == "invalid-sql"
    assert (facts["line"], facts["column"]) == (1, column)
    assert expected in str(facts["expected"])
    assert str(facts["excerpt"]).endswith("^")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("select nam from t", "name"),
        ("select * from t where ID = 1", "id"),
        ("selekt * from t", "SELECT"),
        ("insert into t (nme) values (1)", "name"),
    ],
)
def test_given_a_word_that_comes_close_then_it_is_named(text: str, meant: str) -> None:
    with pytest.raises(Refused) as refused:
        read(text)

    assert refused.value.facts["did_you_mean"] == meant


def test_given_a_default_and_a_null_then_the_one_is_left_out_and_the_other_is_there() -> None:
    (made,) = read("insert into t (id, at, name) values (1, -2, default), (2, +3, null)")

    rows = ({"id": 1, "at": -2}, {"id": 2, "at": 3, "name": None})
    assert made == InsertRows(QualifiedTable("t"), rows)


def test_given_no_layout_then_a_text_is_read_as_far_as_it_can_be_without() -> None:
    (made,) = read("insert into t values (1, 'x')", None)

    assert made == InsertRows(QualifiedTable("t"), ({"0": 1, "1": "x"},))


def test_given_between_then_it_is_two_conditions_at_one_place() -> None:
    (statement,) = row_statements("select * from t where id between 1 and 9", lambda table: PLAIN)

    assert isinstance(statement.command, SelectRows)
    found = [(each.comparison, each.value) for each in statement.command.conditions]
    assert found == [(">=", 1), ("<=", 9)]
    assert statement.place_of("/where/0/value") == 33
    assert statement.place_of("/where/1/value") == 39


@given(st.data(), layouts())
def test_given_a_statement_when_printed_then_it_is_read_as_the_same(
    data: st.DataObject, layout: Layout
) -> None:
    command = data.draw(commands(layout))

    assert read(text_of(command, layout), layout) == [command]


KINDS: dict[type[RowCommand], type[exp.Expression]] = {
    InsertRows: exp.Insert,
    UpdateRow: exp.Update,
    DeleteRow: exp.Delete,
    SelectRows: exp.Select,
}


@given(st.data(), layouts())
def test_given_a_statement_then_a_parser_of_the_standard_reads_it_too(
    data: st.DataObject, layout: Layout
) -> None:
    """The language is a part of SQL: whatever is read here, sqlglot's parser reads as the same."""
    command = data.draw(commands(layout))
    if isinstance(command, ExplainRows):
        command = command.command

    tree = sqlglot.parse_one(text_of(command, layout), dialect="postgres")

    assert isinstance(tree, KINDS[type(command)])
    assert {table.name for table in tree.find_all(exp.Table)} == {"t"}
    match command:
        case InsertRows(rows=rows):
            assert len(tree.expression.expressions) == len(rows)
        case SelectRows(columns=columns, conditions=conditions):
            assert [each.name for each in tree.expressions] == list(columns or ("*",))
            compared = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
            assert len(list(tree.find_all(*compared))) == len(conditions)


@given(st.text(), layouts())
def test_given_any_text_then_it_is_read_or_refused_with_a_place(text: str, layout: Layout) -> None:
    try:
        list(row_statements(text, lambda table: layout))
    except Refused as error:
        refused = error
    else:
        return
    assert refused.code == "invalid-sql"
    assert {"line", "column", "expected"} <= refused.facts.keys()


@given(st.data(), layouts())
def test_given_a_statement_that_is_cut_or_changed_then_it_is_read_or_refused(
    data: st.DataObject, layout: Layout
) -> None:
    text = text_of(data.draw(commands(layout)), layout)
    place, width = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 4))
    between = data.draw(st.sampled_from(("", "'", '"', "(", "AND", "NULL", "-", ";", "\0")))
    codes = {"invalid-sql"}
    try:
        read(text[:place] + between + text[place + width :], layout)
    except Refused as error:
        codes.add(error.code)
    assert codes == {"invalid-sql"}


def test_given_types_then_constants_are_in_the_form_of_their_columns() -> None:
    layout = layout_of(
        ("id", INT),
        *((t, parse_type(t)) for t in ("decimal(4,2)", "float64", "timestamp(ms)", "binary")),
    )

    (made,) = read("insert into t values (1, 1.50, 2, '2013-01-31 23:59:59+00', X'00ff')", layout)

    assert isinstance(made, InsertRows)
    assert list(made.rows[0].values()) == [1, "1.50", 2.0, "2013-01-31T23:59:59Z", "AP8="]
