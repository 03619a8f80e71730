"""A table as statements execute it at one schema version: its elements, and what each does.

Made of what the feed says; what users see of it is its `layout`. No state is named here or in what
executes it: what a statement does for an element is in its graph (base/elements/graphs.py).
"""

from dataclasses import dataclass

from base.elements.graph import Behaviour, Graph
from base.elements.graphs import GRAPHS, OPTIONAL_COLUMN, REQUIRED_COLUMN
from base.errors import NotFound
from base.expressions.check import Check
from base.rows.layout import Column, Layout
from base.schema.partition import router
from base.schema.types import ColumnType, parse_type
from base.schema.values import Value, from_json
from base.wire.feed import FeedColumn, FeedTable


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column that rows have, whether users know it or not."""

    column: Column
    origin: Value | None
    """What a row reads as that does not have the column; None: null."""
    does: Behaviour

    @property
    def filler(self) -> Value | None:
        """What FILL stores: the default, and where that cannot be, what older rows read as."""
        has_default = self.column.default is not None or self.column.nullable
        return self.column.default if has_default else self.origin

    @classmethod
    def of(cls, body: FeedColumn) -> "StoredColumn":
        type = parse_type(body.type)
        default = _value(type, body.default)
        column = Column(body.id, body.name, type, body.nullable, default)
        origin = _value(type, body.origin_default)
        return cls(column, origin, _graph_of(body).behaviours[body.state])


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index; its entries are family `id` of each region."""

    id: int
    name: str
    columns: tuple[Column, ...]
    unique: bool
    does: Behaviour

    @property
    def types(self) -> tuple[ColumnType, ...]:
        return tuple(column.type for column in self.columns)


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint: what new rows must satisfy."""

    name: str
    kind: str
    """Of its graph."""
    columns: tuple[Column, ...]
    does: Behaviour
    check: Check | None = None
    """The condition of a check."""


@dataclass(frozen=True)
class Schema:
    layout: Layout
    columns: tuple[StoredColumn, ...]
    indexes: tuple[StoredIndex, ...]
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, table: FeedTable) -> "Schema":
        columns = tuple(StoredColumn.of(one) for one in table.columns)
        by_id = {one.column.id: one.column for one in columns}
        indexes = tuple(
            StoredIndex(
                one.id,
                one.name,
                tuple(by_id[id] for id in one.columns),
                one.unique,
                GRAPHS["unique-index" if one.unique else "index"].behaviours[one.state],
            )
            for one in table.indexes
        )
        types = {id: column.type for id, column in by_id.items()}
        rules = tuple(
            Rule(
                one.name,
                one.kind,
                tuple(by_id[id] for id in one.columns),
                GRAPHS[one.kind].behaviours[one.state],
                None if one.expression is None else Check.of(one.expression, types),
            )
            for one in table.constraints
        )
        return cls(_layout(table, columns), columns, indexes, rules)

    @property
    def version(self) -> int:
        return self.layout.schema_version

    def index(self, name: str) -> StoredIndex:
        """One that reads may rely on. Raises NotFound."""
        for one in self.indexes:
            if one.name == name and one.does.visible:
                return one
        raise NotFound(what="index", name=name)


def _layout(table: FeedTable, columns: tuple[StoredColumn, ...]) -> Layout:
    visible = tuple(one.column for one in columns if one.does.visible)
    by_id = {column.id: column for column in visible}
    routed_by = tuple(by_id[id] for id in table.partition.columns)
    return Layout(
        table_id=table.id,
        name=f"{table.catalog}.{table.schema_name}.{table.name}",
        schema_version=table.schema_version,
        columns=visible,
        key=tuple(by_id[id] for id in table.primary_key),
        router=router(table.partition, [column.type for column in routed_by]),
        routed_by=routed_by,
    )


def _graph_of(column: FeedColumn) -> Graph:
    says_nothing = column.default is None and column.origin_default is None
    return OPTIONAL_COLUMN if column.nullable and says_nothing else REQUIRED_COLUMN


def _value(type: ColumnType, found: object) -> Value | None:
    return None if found is None else from_json(type, found)
