"""A table as statements execute it at one schema version: its elements, and what each does.

Made of what the feed says; what users see of it is its `layout`. No state is named here or in what
executes it: what a statement does for an element is in its graph (metasrv_base/elements/graphs.py).
"""

from dataclasses import dataclass

from metasrv_base.elements.graph import Act, Behaviour, Graph
from metasrv_base.elements.graphs import (
    CHANGED_COLUMN,
    GRAPHS,
    OPTIONAL_COLUMN,
    REPLACED_COLUMN,
    REQUIRED_COLUMN,
)
from metasrv_base.errors import NotFound
from metasrv_base.expressions.check import Check
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.schema.conversion import Conversion, conversion_of
from metasrv_base.schema.partition import router
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value, from_json
from metasrv_base.wire.frontend.feed import FeedColumn, FeedTable

_STORING = frozenset({Act.KEEP, Act.PUT, Act.FILL, Act.MIRROR})


@dataclass(frozen=True, slots=True)
class MirrorColumn:
    """The column that has what a hidden one has, in another type."""

    column: LayoutColumn
    conversion: Conversion
    """The conversion of its values for the hidden column."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column that rows have, whether users know it or not."""

    column: LayoutColumn
    origin: Value | None
    """The value that rows without the column read as; None: null."""
    does: Behaviour
    mirror: MirrorColumn | None = None

    @property
    def acts(self) -> frozenset[Act]:
        """All that any statement does for it."""
        does = self.does
        return frozenset((*does.insert, *does.update, *does.update_elsewhere, *does.delete))

    @property
    def is_written(self) -> bool:
        """Whether new rows have it at all; else they read as rows of before."""
        return bool(self.acts & _STORING)

    @property
    def filler(self) -> Value | None:
        """The value that FILL stores: the default, or, if the column can have none, the value that
        older rows read as."""
        has_default = self.column.default is not None or self.column.nullable
        return self.column.default if has_default else self.origin

    @classmethod
    def of(cls, body: FeedColumn, other: FeedColumn | None) -> "StoredColumn":
        """Builds the column from the feed. *other* is the column that it replaces, or that replaces
        it."""
        column = _column(body)
        does = _graph_of(body, other).behaviours[body.state]
        mirror = None
        if other is not None and not does.visible:
            source = _column(other)
            mirror = MirrorColumn(source, conversion_of(source.type, column.type))
        return cls(column, _value(column.type, body.origin_default), does, mirror)


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index; its entries are family `id` of each region."""

    id: int
    name: str
    columns: tuple[LayoutColumn, ...]
    unique: bool
    does: Behaviour

    @property
    def types(self) -> tuple[ColumnType, ...]:
        return tuple(column.type for column in self.columns)


@dataclass(frozen=True, slots=True)
class ConstraintRule:
    """A constraint: what new rows must satisfy."""

    name: str
    kind: str
    """The kind of the constraint, which names its graph."""
    columns: tuple[LayoutColumn, ...]
    does: Behaviour
    check: Check | None = None
    """The condition of a check."""


@dataclass(frozen=True)
class Schema:
    layout: Layout
    columns: tuple[StoredColumn, ...]
    indexes: tuple[StoredIndex, ...]
    rules: tuple[ConstraintRule, ...]

    @classmethod
    def of(cls, table: FeedTable) -> "Schema":
        columns = _columns(table)
        by_id = {stored.column.id: stored.column for stored in columns}
        indexes = tuple(
            StoredIndex(
                index.id,
                index.name,
                tuple(by_id[id] for id in index.columns),
                index.unique,
                GRAPHS["unique-index" if index.unique else "index"].behaviours[index.state],
            )
            for index in table.indexes
        )
        types = {id: column.type for id, column in by_id.items()}
        rules = tuple(
            ConstraintRule(
                constraint.name,
                constraint.kind,
                tuple(by_id[id] for id in constraint.columns),
                GRAPHS[constraint.kind].behaviours[constraint.state],
                None if constraint.expression is None else Check.of(constraint.expression, types),
            )
            for constraint in table.constraints
        )
        return cls(_layout(table, columns), columns, indexes, rules)

    @property
    def version(self) -> int:
        return self.layout.schema_version

    def index(self, name: str) -> StoredIndex:
        """One that reads may rely on. Raises NotFound."""
        for index in self.indexes:
            if index.name == name and index.does.visible:
                return index
        raise NotFound(what="index", name=name)


def _layout(table: FeedTable, columns: tuple[StoredColumn, ...]) -> Layout:
    visible = tuple(stored.column for stored in columns if stored.does.visible)
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


def _columns(table: FeedTable) -> tuple[StoredColumn, ...]:
    by_id = {column.id: column for column in table.columns}
    replacing = {column.replaces: column for column in table.columns}
    return tuple(
        StoredColumn.of(
            column, by_id[column.replaces] if column.replaces else replacing.get(column.id)
        )
        for column in table.columns
    )


def _graph_of(column: FeedColumn, other: FeedColumn | None) -> Graph:
    if other is not None:
        return REPLACED_COLUMN if column.replaces is None else CHANGED_COLUMN
    says_nothing = column.default is None and column.origin_default is None
    return OPTIONAL_COLUMN if column.nullable and says_nothing else REQUIRED_COLUMN


def _column(body: FeedColumn) -> LayoutColumn:
    type = parse_type(body.type)
    return LayoutColumn(body.id, body.name, type, body.nullable, _value(type, body.default))


def _value(type: ColumnType, value: object) -> Value | None:
    return None if value is None else from_json(type, value)
