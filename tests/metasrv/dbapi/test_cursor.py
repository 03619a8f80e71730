"""Statements through the DB-API, at a frontend over a real datanode."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metasrv import dbapi
from metasrv.dbapi import batches
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value, to_json
from tests.dataplane.frontend.tables import column, feed_table, index
from tests.metasrv.dbapi.hosted import Hosted, hosted
from tests.metasrv.sdk.catalog import answer
from tests.metasrv_base.schema.values import SAMPLES, values

TYPES = {
    "a_boolean": "boolean",
    "an_int8": "int8",
    "an_int64": "int64",
    "a_float32": "float32",
    "a_float64": "float64",
    "a_decimal": "decimal(38,10)",
    "a_string": "string",
    "a_binary": "binary",
    "a_date": "date",
    "in_s": "timestamp(s)",
    "in_ms": "timestamp(ms)",
    "in_us": "timestamp(us)",
    "in_ns": "timestamp(ns)",
}
WIDE = feed_table(
    *(column(id, name, type) for id, (name, type) in enumerate(TYPES.items(), 2)), regions=3
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


@pytest.fixture
def one() -> Iterator[Hosted]:
    with hosted(feed_table(index(1, 2), regions=3)) as host:
        yield host


@pytest.fixture
def cursor(one: Hosted) -> dbapi.Cursor:
    return one.connection.cursor()


# -- values


def python_value(type: ColumnType, value: Value) -> Any:
    """The value that a program binds, and gets."""
    if type.name != "timestamp":
        return value
    if type.unit == "ns":
        return to_json(type, value)
    assert isinstance(value, int)
    return EPOCH + timedelta(microseconds=value * PER_UNIT[type.unit])


def drawn(type: ColumnType) -> st.SearchStrategy[Any]:
    wide = values(type)
    if type.name.startswith("float"):
        wide = st.one_of(wide, st.sampled_from([math.nan, math.inf, -math.inf]))
    return st.none() | wide.map(lambda value: python_value(type, value))


ROWS = st.tuples(*(drawn(parse_type(type)) for type in TYPES.values()))


def alike(left: object, right: object) -> bool:
    is_nan = isinstance(left, float) and math.isnan(left)
    same_type = type(left) is type(right)
    return same_type and (left == right or (is_nan and right != right))


@pytest.mark.slow
def test_given_values_of_all_types_when_bound_then_equal_ones_come_back() -> None:
    marks = ", ".join("?" * (1 + len(TYPES)))
    with hosted(WIDE) as host:
        cursor = host.connection.cursor()
        ids = iter(range(10_000))

        @settings(suppress_health_check=[HealthCheck.too_slow])
        @given(ROWS)
        def come_back(row: tuple[Any, ...]) -> None:
            id = next(ids)
            cursor.execute(f"insert into t values ({marks})", (id, *row))
            assert cursor.rowcount == 1

            found = cursor.execute("select * from t where id = ?", (id,)).fetchall()

            assert len(found) == 1
            assert all(map(alike, found[0], (id, *row))), (found[0], row)

        come_back()


@pytest.mark.slow
def test_given_the_ends_of_each_type_when_bound_then_they_come_back() -> None:
    with hosted(WIDE) as host:
        cursor = host.connection.cursor()
        ids = iter(range(10_000))
        by_type = {type: name for name, type in TYPES.items()}
        tried = 0
        for text, samples in SAMPLES:
            type, name = parse_type(text), by_type.get(text)
            for sample in samples if name else ():
                id, value = next(ids), python_value(type, sample)
                cursor.execute(f"insert into t (id, {name}) values (?, ?)", [id, value])
                cursor.execute(f"select {name} from t where id = ?", [id])
                assert cursor.description is not None
                assert cursor.description[0][1] == text
                assert cursor.fetchall() == [(value,)]
                tried += 1
        assert tried > 20


def test_given_a_text_that_names_a_view_when_bound_then_the_query_stays_a_frontends(
    cursor: dbapi.Cursor,
) -> None:
    """A text must not choose the server that its statement goes to."""
    hostile = "x' FROM information_schema.tables -- "
    cursor.execute("insert into t values (?, ?, ?)", (1, 2, hostile))

    with pytest.raises(dbapi.ProgrammingError, match="primary key \\(id\\); index by_2"):
        cursor.execute("select b from t where b = ?", (hostile,))

    assert cursor.execute("select b from t where id = ?", (1,)).fetchall() == [(hostile,)]


# -- results


def test_given_a_query_then_its_columns_and_rows_are_those_of_pep_249(
    cursor: dbapi.Cursor,
) -> None:
    cursor.executemany("insert into t values (?, ?, ?)", [(n, n % 2, str(n)) for n in range(7)])
    assert (cursor.rowcount, cursor.description) == (7, None)

    cursor.execute("select id, b from t order by id")

    assert cursor.description == (
        ("id", "int64", None, None, None, None, None),
        ("b", "string", None, None, None, None, None),
    )
    assert (cursor.rowcount, cursor.arraysize) == (7, 1)
    assert cursor.fetchone() == (0, "0")
    assert cursor.fetchmany() == [(1, "1")]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(2, "2"), (3, "3")]
    assert next(cursor) == (4, "4")
    assert cursor.fetchmany(1) == [(5, "5")]
    assert cursor.fetchall() == [(6, "6")]
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])
    assert list(cursor) == []


def test_given_a_view_then_its_columns_have_types_and_its_times_are_datetimes(one: Hosted) -> None:
    shown = {
        "offset": 0,
        "columns": ["table_name", "created_at"],
        "types": ["string", "timestamp(ms)"],
        "rows": [["t", "2013-01-31T23:59:59.5Z"]],
    }
    one.frontends.script.append(answer(200, {"results": [shown]}))
    with one.connection.cursor() as cursor:
        cursor.execute("select table_name, created_at from information_schema.tables")

        assert [column[:2] for column in cursor.description or ()] == [
            ("table_name", "string"),
            ("created_at", "timestamp(ms)"),
        ]
        assert (cursor.description or ())[1][1] == dbapi.DATETIME
        assert cursor.fetchall() == [
            ("t", datetime(2013, 1, 31, 23, 59, 59, 500_000, tzinfo=UTC)),
        ]


def test_given_statements_that_write_then_the_rows_are_counted(cursor: dbapi.Cursor) -> None:
    cursor.execute("insert into t (id) values (1), (2)")
    counts = [cursor.rowcount]
    for text in ("update t set b = 'x' where id = ?", "delete from t where id = ?"):
        counts += [cursor.execute(text, (number,)).rowcount for number in (1, 99)]

    assert counts == [2, 1, 0, 1, 1]


@pytest.mark.parametrize(
    "text", ["", " -- nothing", "select * from t; select * from t", "delete from t where id = 1; x"]
)
def test_given_no_statement_or_several_then_nothing_is_done(
    cursor: dbapi.Cursor, text: str
) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute(text)


def test_given_the_optional_parts_of_pep_249_then_some_are_there_and_the_others_have_no_name(
    one: Hosted,
) -> None:
    connection = one.connection
    with connection.cursor() as cursor:
        assert cursor.connection is connection
        cursor.setinputsizes([dbapi.STRING, 25])
        cursor.setoutputsize(1_000, 2)
        cursor.execute("insert into t values (?, ?, ?)", [1, None, "x"])
        cursor.execute("select a, b from t")
        assert list(cursor) == [(None, "x")]
        for name in ("callproc", "nextset", "scroll", "lastrowid", "messages"):
            assert not hasattr(cursor, name)
    for name in ("Error", "Warning", "InterfaceError", "DatabaseError", "DataError"):
        assert getattr(connection, name) is getattr(dbapi, name)


def test_given_no_result_when_fetched_then_it_is_refused(cursor: dbapi.Cursor) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.fetchone()
    cursor.execute("insert into t (id) values (1)")
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.fetchall()


# -- executemany


def test_given_many_rows_then_they_are_few_requests(
    one: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ROWS_MAX", 400)
    cursor = one.connection.cursor()
    rows = [(number, number * 2, f"row {number}") for number in range(1_000)]

    cursor.executemany("insert into t values (?, ?, ?)", iter(rows))

    assert (cursor.rowcount, len(one.frontends.told)) == (1_000, 3)
    assert cursor.execute("select * from t order by id").fetchall() == rows


def test_given_updates_and_deletes_then_each_parameters_are_a_statement(one: Hosted) -> None:
    cursor = one.connection.cursor()
    cursor.executemany("insert into t (id) values (?)", [(number,) for number in range(50)])
    cursor.executemany("update t set b = ? where id = ?", [(str(n), n) for n in range(60)])
    written = cursor.rowcount
    cursor.executemany("delete from t where id = ?", [(n,) for n in range(49)])

    assert (written, cursor.rowcount) == (50, 49)
    assert cursor.execute("select id, b from t").fetchall() == [(49, "49")]
    assert len(one.frontends.told) == 4


@pytest.mark.parametrize(
    ("regions", "kind"), [(1, dbapi.IntegrityError), (3, dbapi.PartlyDoneError)]
)
def test_given_a_row_that_is_there_then_the_error_tells_how_far_it_came(
    regions: int, kind: type[dbapi.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one INSERT are done region by region, and in one region all of them or none."""
    monkeypatch.setattr(batches, "ROWS_MAX", 10)
    with hosted(feed_table(regions=regions)) as host:
        cursor = host.connection.cursor()
        cursor.execute("insert into t (id) values (25)")

        with pytest.raises(kind) as refused:
            cursor.executemany("insert into t (id) values (?)", [(number,) for number in range(40)])
        written = cursor.rowcount
        ids = [id for (id,) in cursor.execute("select id from t order by id")]

    assert type(refused.value) is kind
    assert refused.value.code == "already-exists"
    assert refused.value.facts["parameters_done"] == 20
    assert ids[:20] == list(range(20))
    assert written == len(ids) - 1
    assert (len(ids) == 21) is (regions == 1)


def test_given_an_update_that_fails_then_those_before_it_are_told_as_done(one: Hosted) -> None:
    cursor = one.connection.cursor()
    cursor.executemany("insert into t (id) values (?)", [(1,), (2,), (3,)])
    parameters = [("x", 1), ("y", 2), (3, 3), ("z", 1)]

    with pytest.raises(dbapi.DatabaseError) as refused:
        cursor.executemany("update t set b = ? where id = ?", parameters)

    assert refused.value.facts["parameters_done"] == 2
    assert cursor.rowcount == 2
    cursor.execute("select b from t order by id")
    assert cursor.fetchall() == [("x",), ("y",), (None,)]


@pytest.mark.parametrize("text", ["select * from t where id = ?", " show tables"])
def test_given_a_query_for_many_then_it_is_refused(cursor: dbapi.Cursor, text: str) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.executemany(text, [(1,)])


# -- errors


@pytest.mark.parametrize(
    ("text", "parameters", "kind", "code"),
    [
        ("select * frm t", (), dbapi.ProgrammingError, "invalid-sql"),
        ("insert into t values (?, ?, ?)", (1, "x", "y"), dbapi.DataError, "invalid-request"),
        ("insert into t (id) values (1), (1)", (), dbapi.DatabaseError, None),
        ("select 'x", (), dbapi.ProgrammingError, ""),
    ],
)
def test_given_a_statement_that_is_refused_then_the_exception_is_of_its_kind(
    cursor: dbapi.Cursor,
    text: str,
    parameters: tuple[object, ...],
    kind: type[dbapi.Error],
    code: str | None,
) -> None:
    with pytest.raises(kind) as refused:
        cursor.execute(text, parameters)

    assert code is None or refused.value.code == code
    assert not isinstance(refused.value, dbapi.OutcomeUnknownError)


@pytest.mark.slow
def test_given_answers_that_are_lost_then_it_is_done_once_or_unknown() -> None:
    lost: list[tuple[str, httpx.RequestError]] = [("after", httpx.ReadError("lost"))]
    with hosted(feed_table(), wait_s=0.8) as host:
        cursor = host.connection.cursor()
        host.frontends.faults = [*lost, *lost]
        cursor.execute("insert into t (id) values (1)")
        written = cursor.rowcount
        host.frontends.faults = lost * 1_000

        with pytest.raises(dbapi.OutcomeUnknownError):
            cursor.execute("insert into t (id) values (2)")

        host.frontends.faults = []
        assert written == 1
        assert cursor.execute("select id from t order by id").fetchall() == [(1,), (2,)]


def test_given_frontends_that_cannot_be_reached_then_nothing_was_done() -> None:
    with hosted(feed_table(), wait_s=0.3) as host:
        host.frontends.faults = [("before", httpx.ConnectError("gone"))] * 1_000

        with pytest.raises(dbapi.OperationalError) as refused:
            host.connection.cursor().execute("insert into t (id) values (1)")

    assert not isinstance(refused.value, dbapi.OutcomeUnknownError)


@pytest.mark.parametrize(
    ("last", "kind"), [((object(),), dbapi.DataError), ((1, 2), dbapi.ProgrammingError)]
)
def test_given_parameters_that_cannot_be_bound_then_those_before_are_told_as_done(
    monkeypatch: pytest.MonkeyPatch, one: Hosted, last: tuple[object, ...], kind: type[dbapi.Error]
) -> None:
    """Parameters of earlier requests are done, those of the request that was filled are not."""
    monkeypatch.setattr(batches, "ROWS_MAX", 10)
    cursor = one.connection.cursor()
    rows = [*((number,) for number in range(25)), last]

    with pytest.raises(kind) as refused:
        cursor.executemany("insert into t (id) values (?)", rows)

    assert refused.value.facts["parameters_done"] == 20
    assert cursor.rowcount == 20
    cursor.execute("select id from t")
    assert len(cursor.fetchall()) == 20


def test_given_a_declared_age_of_rows_then_statements_say_it() -> None:
    with hosted(feed_table(), max_lag=5_000) as host:
        cursor = host.connection.cursor()
        cursor.execute("insert into t (id) values (1)")
        assert cursor.execute("select id from t").fetchall() == [(1,)]
    with hosted(feed_table(), max_lag=0) as host, pytest.raises(dbapi.DataError) as refused:
        host.connection.cursor().execute("select id from t")
    assert "/max_lag" in str(refused.value)
