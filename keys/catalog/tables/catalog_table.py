"""A table of the catalog: its definition, its route, and the sets of columns that it had."""

from dataclasses import replace

from keys.catalog.schema_versions import SchemaVersion, are_alike, followed
from keys.catalog.tables.heads import TableHead, head_of
from keys.model.tables import TableInfo, TableRoute
from metasrv_base.values.frozen import frozen


@frozen
class CatalogTable:
    """A table and where it is, as of the update that last changed either."""

    info: TableInfo
    route: TableRoute
    catalog_version: int
    dropped_at_ms: int | None = None
    dropped_by: str | None = None
    columns_schema_version: int = 0
    """Schema version of the table when its public columns became what they are."""
    columns_catalog_version: int = 0
    """The version of the catalog that made them so."""
    columns_at_ms: int = 0
    """Commit time of that version."""
    earlier: tuple[SchemaVersion, ...] = ()
    """Sets of columns that it had before, the oldest first."""

    @classmethod
    def created(
        cls, info: TableInfo, route: TableRoute, version: int, at_ms: int
    ) -> "CatalogTable":
        return cls(
            info,
            route,
            version,
            columns_schema_version=info.schema_version,
            columns_catalog_version=version,
            columns_at_ms=at_ms,
        )

    def changed(self, info: TableInfo, version: int, at_ms: int) -> "CatalogTable":
        """The table with *info* as its definition, as of a version of the catalog."""
        if are_alike(self.info, info):
            return replace(self, info=info, catalog_version=version)
        return replace(
            self.created(info, self.route, version, at_ms),
            earlier=followed(self.earlier, self.columns_set),
        )

    @property
    def head(self) -> TableHead:
        is_dropped = self.dropped_at_ms is not None
        return head_of(self.info, self.route, self.catalog_version, is_dropped=is_dropped)

    @property
    def columns_set(self) -> SchemaVersion:
        """The columns that users see, and since when."""
        return SchemaVersion(
            self.columns_schema_version,
            self.columns_catalog_version,
            self.columns_at_ms,
            self.info.public_columns,
        )

    @property
    def schema_versions(self) -> tuple[SchemaVersion, ...]:
        """All sets of columns that are kept, the current one last."""
        return (*self.earlier, self.columns_set)
