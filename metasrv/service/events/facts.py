"""The facts that events share: of their version, and of the table that they are about. Pure."""

from typing import TypedDict

from keys.model.log import CatalogUpdate
from keys.model.tables import TableInfo
from metasrv.service.bodies.shapes import time_of


class VersionFacts(TypedDict):
    """The facts of a version, as each of its events has them."""

    version: int
    committed_at: str
    by: str | None
    request_id: str | None
    procedure_id: str | None


class TableFacts(VersionFacts):
    """The facts of an event of a table."""

    table_id: int
    catalog: str
    schema_name: str
    table: str


def version_facts(update: CatalogUpdate) -> VersionFacts:
    origin = update.origin
    return VersionFacts(
        version=update.version,
        committed_at=time_of(update.at_ms),
        by=None if origin is None else origin.by,
        request_id=None if origin is None else origin.request_id,
        procedure_id=update.procedure,
    )


def table_facts(facts: VersionFacts, info: TableInfo) -> TableFacts:
    return TableFacts(
        **facts,
        table_id=info.table_id,
        catalog=info.catalog,
        schema_name=info.schema_name,
        table=info.name,
    )
