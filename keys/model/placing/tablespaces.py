"""Tablespaces: groups of tables of one catalog whose regions of the same number stay together."""

from dataclasses import dataclass
from typing import ClassVar

from keys.key import Key
from keys.model.catalogs import CatalogInfo
from keys.value import StoredModel

DEFAULT_TABLESPACE = "default"
"""The tablespace of tables that name none. Every catalog has it, under this name."""
TABLESPACES_MAX = 100
"""Tablespaces of one catalog; all of them go in one transaction with it."""


class TablespaceInfo(StoredModel):
    tablespace_id: int
    """Never reused: it comes from the sequence of the catalogs' ids, and `default` bears that of
    its catalog (docs/decisions/0231)."""
    catalog: str
    name: str
    version: int = 1
    """Rises by one at every change of this value."""
    comment: str | None = None
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class TablespaceKey(Key[TablespaceInfo]):
    template: ClassVar[str] = "__tablespace/{catalog}/{name}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = TablespaceInfo

    catalog: str
    name: str


class GroupedTable(StoredModel):
    """A living table in a tablespace that is not `default`."""

    table_id: int


@dataclass(frozen=True, slots=True)
class GroupedTableKey(Key[GroupedTable]):
    """Derived from the table. A tablespace without such a key can be dropped."""

    template: ClassVar[str] = "__tablespace_table/{tablespace_id}/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = GroupedTable

    tablespace_id: int
    table_id: int


def default_tablespace(catalog: CatalogInfo) -> TablespaceInfo:
    return TablespaceInfo(
        tablespace_id=catalog.catalog_id,
        catalog=catalog.name,
        name=DEFAULT_TABLESPACE,
        created_at_ms=catalog.created_at_ms,
    )
