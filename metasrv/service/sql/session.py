"""The names of a statement, completed by the catalog and the schema of its session. Pure."""

from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from metasrv.service.requests.ddl_request import FullSchemaName, FullTableName
from metasrv.service.requests.placing_names import FullTablespaceName
from metasrv_base.elements.states import ElementState
from metasrv_base.sql.commands import NameInCatalog, QualifiedTable


@dataclass(frozen=True, slots=True)
class SqlSession:
    catalog: str
    schema: str

    def table(self, name: QualifiedTable) -> FullTableName:
        return FullTableName(name.catalog or self.catalog, name.schema or self.schema, name.table)

    def schema_of(self, name: QualifiedTable) -> FullSchemaName:
        return FullSchemaName(name.catalog or self.catalog, name.schema or self.schema)

    def schema_named(self, name: NameInCatalog) -> FullSchemaName:
        return FullSchemaName(name.catalog or self.catalog, name.name)

    def tablespace(self, name: NameInCatalog) -> FullTablespaceName:
        return FullTablespaceName(name.catalog or self.catalog, name.name)


def type_of(
    catalog: Catalog, session: SqlSession, table: QualifiedTable, column: str
) -> str | None:
    """The type of a public column, as the API writes it."""
    there = catalog.find(
        table.catalog or session.catalog, table.schema or session.schema, table.table
    )
    columns = () if there is None else there.info.columns
    return next(
        (
            each.type
            for each in columns
            if each.name == column and each.state is ElementState.PUBLIC
        ),
        None,
    )
