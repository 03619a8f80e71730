"""A table as its descriptor tells it: what a client asks of columns and keys. Pure.

A view over the definition and the history that the catalog keeps; nothing of it is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from keys.catalog.schema_versions import SchemaVersion
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import Column
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt


@dataclass(frozen=True, slots=True)
class TableDescriptor:
    """Columns are those that users see, in declared order."""

    schema_id: int
    table: CatalogTable

    @classmethod
    def of(cls, catalog: Catalog, table: CatalogTable) -> "TableDescriptor":
        """Describes a table of *catalog*; also one whose schema is being dropped."""
        name = (table.info.catalog, table.info.schema_name)
        schema = catalog.schemas.get(name) or catalog.leaving.get(name)
        if schema is None:
            raise Corrupt(table_id=table.info.table_id, schema=name)
        return cls(schema.schema_id, table)

    @property
    def table_id(self) -> int:
        return self.table.info.table_id

    @property
    def version(self) -> int:
        return self.table.info.version

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.info.public_columns

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of its columns, in the order of the key."""
        names = {column.id: column.name for column in self.table.info.columns}
        return tuple(names[column] for column in self.table.info.primary_key)

    @property
    def states(self) -> Mapping[str, ElementState]:
        """The state of each element: columns, indexes and constraints by kind and name."""
        info = self.table.info
        kinds = (
            ("column", info.columns),
            ("index", info.indexes),
            ("constraint", info.constraints),
        )
        return {f"{kind} {each.name}": each.state for kind, some in kinds for each in some}

    @property
    def schema_versions(self) -> tuple[SchemaVersion, ...]:
        """The sets of columns that it had, the current one last."""
        return self.table.schema_versions

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def column_index(self, name: str) -> int:
        """The position among the columns; -1: there is none of that name."""
        return next((n for n, column in enumerate(self.columns) if column.name == name), -1)

    def is_primary_key_column(self, name: str) -> bool:
        column = self.column(name)
        return column is not None and column.id in self.table.info.primary_key

    def is_colocation_column(self, name: str) -> bool:
        """Whether rows that are alike in it, and in the others, are in one region. A table that
        names no such columns has those of its partition."""
        column, info = self.column(name), self.table.info
        return column is not None and column.id in (info.colocation or info.partition.columns)
