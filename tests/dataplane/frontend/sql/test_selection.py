"""Rows by SQL against a model, for columns of every type: as key, by index, and over REST."""

import asyncio
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metasrv_base.schema.partition import HashRule, RangeRule
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value, from_json, to_json
from metasrv_base.sql.literals import literal
from metasrv_base.wire.frontend.feed import FeedTable
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.http.requests import ARROW, SCAN, get
from tests.dataplane.frontend.sql.sql_requests import done, rows
from tests.dataplane.frontend.tables import column, feed_table, index
from tests.metasrv_base.schema.values import types, values

TYPES = (
    *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "string", "binary"),
    *("date", "decimal(10,3)", "timestamp(s)", "timestamp(ms)", "timestamp(us)", "timestamp(ns)"),
)
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(st.data())
@pytest.mark.slow
def test_given_rows_written_by_sql_then_sql_and_arrow_read_the_same(data: st.DataObject) -> None:
    kinds = [parse_type(text) for text in TYPES]
    row = st.tuples(*(st.none() | values(kind) for kind in kinds))
    drawn = data.draw(st.lists(row, min_size=1, max_size=4))
    columns = [column(place, f"c{place}", kind.text) for place, kind in enumerate(kinds, 2)]

    def said(number: int, row: tuple[Value | None, ...]) -> str:
        pairs = zip(kinds, row, strict=True)
        texts = [literal(None if v is None else to_json(kind, v), kind) for kind, v in pairs]
        return f"({number}, {', '.join(texts)})"

    async def both() -> tuple[list[tuple[Any, ...]], tuple[str, ...], pa.Table]:
        async with running(feed_table(*columns, regions=2)) as bench:
            lines = ", ".join(said(*each) for each in enumerate(drawn))
            body = await done(bench, f"insert into t values {lines}; select * from t order by id")
            arrow = await get(bench, SCAN, ARROW)
        with pa.ipc.open_stream(arrow.body) as reader:
            return list(body.results[-1].rows), body.results[-1].types, reader.read_all()

    by_sql, named, table = asyncio.run(both())
    assert named == ("int64", *TYPES)
    expected = [
        (number, *(None if v is None else to_json(k, v) for k, v in zip(kinds, row, strict=True)))
        for number, row in enumerate(drawn)
    ]
    assert by_sql == expected
    table = table.sort_by("id")
    for place, kind in enumerate(kinds, 1):
        array = table.column(place)
        array = array.cast(pa.int64()) if kind.name == "timestamp" else array
        assert array.to_pylist() == [row[place - 1] for row in drawn]


@st.composite
def tables(draw: st.DrawFn) -> tuple[FeedTable, list[ColumnType]]:
    """A table with a key of two columns (id, k), and an index on (v, k)."""
    key, value = draw(types()), draw(types())
    made = feed_table(
        column(2, "k", key.text, nullable=False),
        column(3, "v", value.text),
        index(1, 3, 2),
        regions=3,
    )
    if draw(st.booleans()):
        partition: HashRule | RangeRule = HashRule(columns=(1, 2), count=3)
    else:
        partition = RangeRule(columns=(1,), bounds=((0,), (5,)))
    return (
        made.model_copy(update={"primary_key": (1, 2), "partition": partition}),
        [ColumnType("int64"), key, value],
    )


NAMES = ("id", "k", "v")
SMALL = st.integers(-2, 7)
Drawn = tuple[Value | None, ...]


@dataclass(frozen=True)
class Case:
    """A table, its rows, a query, and the order that its path has."""

    table: FeedTable
    kinds: list[ColumnType]
    rows: list[Drawn]
    path: tuple[str, ...]
    conditions: list[tuple[str, str, Value]]

    def said(self, name: str, value: Value | None) -> str:
        kind = self.kinds[NAMES.index(name)]
        return literal(None if value is None else to_json(kind, value), kind)

    @property
    def insert(self) -> str:
        lines = (
            f"({', '.join(self.said(*pair) for pair in zip(NAMES, row, strict=True))})"
            for row in self.rows
        )
        return f"insert into t values {', '.join(lines)}"

    @property
    def query(self) -> str:
        parts = [f"{name} {op} {self.said(name, value)}" for name, op, value in self.conditions]
        return f"select * from t{' where ' if parts else ''}{' and '.join(parts)}"

    def holds(self, row: Drawn) -> bool:
        values = [(row[NAMES.index(name)], op, value) for name, op, value in self.conditions]
        return all(own is not None and COMPARED[op](own, value) for own, op, value in values)

    def by_path(self, row: Drawn) -> tuple[Any, ...]:
        """Nulls come first."""
        values = [row[NAMES.index(name)] for name in (*self.path, "id", "k")]
        return tuple((value is not None, 0 if value is None else value) for value in values)

    def read(self, row: tuple[Any, ...]) -> Drawn:
        pairs = zip(self.kinds, row, strict=True)
        return tuple(None if value is None else from_json(kind, value) for kind, value in pairs)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    table, kinds = draw(tables())
    row = st.tuples(SMALL, values(kinds[1]), st.none() | values(kinds[2]))
    rows = draw(st.lists(row, max_size=12, unique_by=lambda each: each[:2]))
    path = draw(st.sampled_from((("id", "k"), ("v", "k"))))
    count = draw(st.integers(0, 2))
    conditions: list[tuple[str, str, Value]] = []
    for place, name in enumerate(path[:count]):
        number = NAMES.index(name)
        there = [each[number] for each in rows if each[number] is not None]
        some = SMALL if name == "id" else values(kinds[number])
        value = draw(st.sampled_from(there) | some if there else some)
        assert value is not None
        comparison = "=" if place + 1 < count else draw(st.sampled_from(list(COMPARED)))
        conditions.append((name, comparison, value))
    return Case(table, kinds, list(rows), path, conditions)


@FEW
@given(cases())
@pytest.mark.slow
def test_given_conditions_then_sql_finds_the_rows_that_a_model_finds(case: Case) -> None:
    async def both() -> list[list[tuple[Any, ...]]]:
        async with running(case.table) as bench:
            if case.rows:
                await done(bench, case.insert)
            ordered = f"{case.query} order by {', '.join(case.path)}"
            return [await rows(bench, text) for text in (case.query, ordered)]

    loose, ordered = asyncio.run(both())

    expected = sorted(filter(case.holds, case.rows), key=case.by_path)
    assert [case.read(row) for row in ordered] == expected
    assert sorted(map(case.read, loose), key=case.by_path) == expected
