"""What the client required at submit, compared again under the locks (PROTOCOLS P1)."""

from base.errors import Conflict, NotFound
from keys.records import Submission
from keys.tables import TableInfo, TableName, TableNameKey


def require_same_table(client: Submission, key: TableNameKey, found: TableName | None) -> None:
    """The name still means the table it resolved to at submit; never silently another one."""
    name = f"{key.catalog}.{key.schema}.{key.table}"
    if found is None:
        raise NotFound("table-not-found", table=name)
    if client.table_id is not None and found.table_id != client.table_id:
        raise Conflict("schema-conflict", name=name, table_id=client.table_id, now=found.table_id)


def require_version(client: Submission, info: TableInfo) -> None:
    """If-Match still matches."""
    if client.if_version is not None and info.version != client.if_version:
        raise Conflict(name=info.full_name, expected=client.if_version, found=info.version)
