"""Keys of a dropped table below `__removed-`, kept until it is purged or undropped."""

from dataclasses import dataclass
from typing import ClassVar

from keys.key import Key
from keys.model.tables import TableInfo, TableNameRecord, TableRoute
from keys.value import StoredModel
from metasrv_base.values.frozen import frozen


class RemovedTableInfo(StoredModel):
    info: TableInfo
    dropped_at_ms: int
    dropped_by: str
    """Id of the procedure that dropped it."""


@frozen
class RemovedTableInfoKey(Key[RemovedTableInfo]):
    template: ClassVar[str] = "__removed-__table_info/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = RemovedTableInfo

    table_id: int


class RemovedTableRoute(StoredModel):
    """A claim on the table's regions, like a route: nobody else may reuse their folders."""

    route: TableRoute
    dropped_at_ms: int
    dropped_by: str


@dataclass(frozen=True, slots=True)
class RemovedTableRouteKey(Key[RemovedTableRoute]):
    template: ClassVar[str] = "__removed-__table_route/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = RemovedTableRoute

    table_id: int


@dataclass(frozen=True, slots=True)
class RemovedTableNameKey(Key[TableNameRecord]):
    """Ends in the id, so that one name can be dropped many times."""

    template: ClassVar[str] = "__removed-__table_name/{catalog}/{schema}/{table}/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = TableNameRecord

    catalog: str
    schema: str
    table: str
    table_id: int
