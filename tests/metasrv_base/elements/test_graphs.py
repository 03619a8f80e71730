"""The checker's model of a statement agrees with a frontend, on every database there is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.planning.row_input import Op, from_rows
from metasrv_base.elements.graph import Graph, Holds
from metasrv_base.elements.graphs import (
    ABSENT,
    CHECK_CONSTRAINT,
    INDEX,
    NOT_NULL,
    OPTIONAL_COLUMN,
    REQUIRED_COLUMN,
    UNIQUE_INDEX,
)
from metasrv_base.elements.proof.database import (
    KEYS,
    NO_ROW,
    A,
    B,
    Database,
    Pair,
    ProofStatement,
    databases,
    faults,
    perform,
    statements,
)
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, Refused
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.wire.frontend.feed import FeedColumn, FeedConstraint, FeedIndex
from tests.dataplane.frontend import tables
from tests.dataplane.frontend.planning.model import ModelRegion
from tests.dataplane.frontend.tables import column, index, rule, schema_of

OTHER = column(3, "b", "string")
OPS = {
    "insert": Op.INSERT,
    "update": Op.UPDATE,
    "update_elsewhere": Op.UPDATE,
    "delete": Op.DELETE,
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with the element as its column `a`, or over it."""

    graph: Graph
    elements: Callable[[ElementState], tuple[FeedColumn | FeedIndex | FeedConstraint, ...]]
    """In a state that is not ABSENT."""
    values: Mapping[int, int | None]
    """Values of A and B in column `a`."""

    def schema(self, state: ElementState) -> Schema:
        if state is not ABSENT:
            return schema_of(OTHER, *self.elements(state))
        return schema_of(OTHER, *(() if self.graph.holds is Holds.VALUES else (tables.A,)))

    def region(self, schema: Schema, db: Database) -> ModelRegion:
        region, keys = ModelRegion(version=1), row_keys(schema)
        held = {key: value for value, key in db.held}
        for key, row in enumerate(db.rows):
            stored = held.get(key, A) if self.graph.holds is Holds.VALUES else row
            if row != NO_ROW:
                values = {"c1": key, "c3": "x", "c2": self.values[stored]}
                region.rows[keys[key]] = (1, {n: v for n, v in values.items() if v is not None})
        if self.graph.holds is Holds.ENTRIES:
            region.entries[1] = {
                self.entry(schema, pair): ReadEntry(1, keys[pair[1]]) for pair in db.held
            }
        return region

    def held(self, schema: Schema, region: ModelRegion) -> frozenset[Pair]:
        keys, values = row_keys(schema), {value: code for code, value in self.values.items()}
        if self.graph.holds is Holds.ENTRIES:
            found = region.index(1)
            pairs = [(value, key) for value in (A, B) for key in KEYS] if found else []
            return frozenset(p for p in pairs if found.get(self.entry(schema, p)) == keys[p[1]])
        if self.graph.holds is Holds.NOTHING:
            return frozenset()
        stored = {key: region.rows[keys[key]][1] for key in KEYS if keys[key] in region.rows}
        is_known = any(one.column.name == "a" for one in schema.columns)
        missing = None if is_known else self.values[A]
        return frozenset((values[row.get("c2", missing)], key) for key, row in stored.items())

    def entry(self, schema: Schema, pair: Pair) -> bytes:
        value, key = pair
        (one,) = schema.indexes
        return encode_entry(
            one.types, [self.values[value]], row_keys(schema)[key], unique=one.unique
        )

    def row(self, does: ProofStatement) -> dict[str, object]:
        """As a user gives it."""
        if does.kind == "delete":
            return {"id": does.key}
        if does.kind == "update_elsewhere":
            return {"id": does.key, "b": "y"}
        silent = self.graph.holds is Holds.VALUES and does.value == A
        return {"id": does.key} | ({} if silent else {"a": self.values[does.value]})

    def read(self, held: frozenset[Pair]) -> frozenset[Pair]:
        """A column that a row does not have reads as its origin default: as A."""
        if self.graph.holds is not Holds.VALUES:
            return held
        return frozenset(pair for pair in held if pair[0] != A)


def row_keys(schema: Schema) -> list[bytes]:
    found: list[bytes] = from_rows(
        schema.layout, [{"id": key} for key in KEYS], Op.DELETE
    ).keys.to_pylist()
    return found


INDEXED = {A: 10, B: 20}
TABLES = (
    Table(INDEX, lambda state: (tables.A, index(1, 2, state=state)), INDEXED),
    Table(UNIQUE_INDEX, lambda state: (tables.A, index(1, 2, unique=True, state=state)), INDEXED),
    Table(OPTIONAL_COLUMN, lambda state: (column(2, "a", state=state),), {A: None, B: 7}),
    Table(
        REQUIRED_COLUMN,
        lambda state: (column(2, "a", nullable=False, default=5, origin_default=5, state=state),),
        {A: 5, B: 7},
    ),
    Table(NOT_NULL, lambda state: (tables.A, rule("not-null", 2, state=state)), {A: 10, B: None}),
    Table(
        CHECK_CONSTRAINT,
        lambda state: (tables.A, rule("check", 2, state=state, expression="c2 < 15")),
        {A: 10, B: 20},
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.graph.name)
def test_given_any_database_when_a_statement_runs_then_a_frontend_does_what_the_checker_explores(
    table: Table,
) -> None:
    graph, runs = table.graph, 0
    for state, behaviour in graph.behaviours.items():
        schema = table.schema(state)
        for db in databases(graph):
            if any(faults(graph, state, db)):
                continue
            for does in statements(graph, behaviour, db):
                after = perform(graph, behaviour, db, does)
                region = table.region(schema, db)

                refused = is_refused(region, schema, OPS[does.kind], table.row(does))

                assert refused is (after is None), f"{db}; {does} at {state}"
                found, expected = table.held(schema, region), (after or db).held
                assert table.read(found) == table.read(expected), f"{db}; {does} at {state}"
                runs += 1
    assert runs > 50, "that was not every database"


def is_refused(region: ModelRegion, schema: Schema, op: Op, row: dict[str, object]) -> bool:
    try:
        region.run(schema, op, [row], careful=True)
    except (Conflict, Refused) as error:
        return error.code in ("index-not-unique", "constraint-violated")
    return False
