"""Answers that each route of tables documents beside its body: metasrv/api/catalog/tables.py."""

from metasrv.api.documents.documented import BODY, MISSED, OF_TABLE, change, page, read
from metasrv_base.wire.api.imports import ImportBody
from metasrv_base.wire.api.tables import RestoredTable, TableBody
from metasrv_base.wire.node.checks import TableCheckBody

LIST_TABLES = page("invalid-identifier")
CREATE_TABLE = change(
    201,
    TableBody,
    *BODY,
    "invalid-identifier",
    "reserved-name",
    "unsupported",
    "ddl-too-large",
    "already-exists",
    "schema-conflict",
    "node-not-eligible",
)
GET_TABLE = read(*OF_TABLE)
DROP_TABLE = change(204, None, *OF_TABLE)
UNDROP_TABLE = change(
    200,
    TableBody,
    *BODY,
    *OF_TABLE,
    "reserved-name",
    "already-exists",
    "ambiguous-dropped-table",
    "region-lost",
)
TRUNCATE_TABLE = change(200, TableBody, *BODY, *OF_TABLE, "node-not-eligible", "region-lost")
RENAME_TABLE = MISSED | change(
    200, TableBody, *BODY, *OF_TABLE, "reserved-name", "already-exists", "invalid-schema-change"
)
ALTER_TABLE = MISSED | change(
    200,
    TableBody,
    *BODY,
    *OF_TABLE,
    "reserved-name",
    "unsupported",
    "already-exists",
    "invalid-schema-change",
    "ddl-too-large",
)
RESTORE_TABLE = change(
    200,
    RestoredTable,
    *BODY,
    *OF_TABLE,
    "history-expired",
    "stale",
    "unsupported",
    "ddl-too-large",
)
CHECK_TABLE = change(200, TableCheckBody, *OF_TABLE, "region-lost")
IMPORT_TABLE = change(
    200,
    ImportBody,
    *BODY,
    *OF_TABLE,
    "constraint-violated",
    "ddl-too-large",
    "invalid-schema-change",
    "region-lost",
)
GET_ROUTE = read(*OF_TABLE)
GET_TABLE_BY_ID = read("table-not-found")
