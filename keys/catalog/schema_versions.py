"""The history of a table's columns: an entry for each set of them that users saw. Pure.

An index, a constraint or an element on its way makes a schema version, but no entry here: those
tell of columns. The sets share the columns that they have in common.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keys.model.tables import Column, TableInfo

SCHEMA_VERSIONS_MAX = 100  # of each table, the current one included


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A set of columns, and since when users saw it."""

    schema_version: int
    """Schema version of the table when its columns became these."""
    catalog_version: int
    """The version of the catalog that made them so."""
    at_ms: int
    """Commit time of that version."""
    columns: tuple[Column, ...]
    """Public ones, in declared order."""


def are_alike(old: TableInfo, new: TableInfo) -> bool:
    """Whether users see the same columns in both."""
    return old.columns is new.columns or list(_shown(old)) == list(_shown(new))


def _shown(info: TableInfo) -> Iterator[tuple[Any, ...]]:
    for column in info.public_columns:
        yield column.id, column.name, column.type, column.nullable, column.default


def followed(earlier: tuple[SchemaVersion, ...], last: SchemaVersion) -> tuple[SchemaVersion, ...]:
    """Returns *earlier* with *last*, which the current one is to follow: as many as are kept."""
    if earlier:
        before = {column.id: column for column in earlier[-1].columns}
        columns = tuple(
            before[column.id] if before.get(column.id) == column else column
            for column in last.columns
        )
        last = SchemaVersion(last.schema_version, last.catalog_version, last.at_ms, columns)
    return (*earlier, last)[1 - SCHEMA_VERSIONS_MAX :]
