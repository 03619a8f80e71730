"""Every kind there is: a new procedure is one file beside this one, and one line here."""

from collections.abc import Mapping
from typing import Any

from procedures.kinds.alter_table import ALTER_TABLE
from procedures.kinds.check_table import CHECK_TABLE
from procedures.kinds.create_catalog import CREATE_CATALOG
from procedures.kinds.create_schema import CREATE_SCHEMA
from procedures.kinds.create_table import CREATE_TABLE
from procedures.kinds.drop_catalog import DROP_CATALOG
from procedures.kinds.drop_schema import DROP_SCHEMA
from procedures.kinds.drop_table import DROP_TABLE
from procedures.kinds.failover_node import FAILOVER_NODE
from procedures.kinds.failover_table import FAILOVER_TABLE
from procedures.kinds.import_table import IMPORT_TABLE
from procedures.kinds.index_kinds import CREATE_INDEX, DROP_INDEX, VALIDATE_INDEX
from procedures.kinds.purge_table import PURGE_TABLE
from procedures.kinds.rename_table import RENAME_TABLE
from procedures.kinds.truncate_table import TRUNCATE_TABLE
from procedures.kinds.undrop_table import UNDROP_TABLE
from procedures.machine import Kind

KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind
    for kind in (
        CREATE_CATALOG,
        DROP_CATALOG,
        CREATE_SCHEMA,
        DROP_SCHEMA,
        CREATE_TABLE,
        DROP_TABLE,
        UNDROP_TABLE,
        PURGE_TABLE,
        RENAME_TABLE,
        ALTER_TABLE,
        CREATE_INDEX,
        VALIDATE_INDEX,
        DROP_INDEX,
        CHECK_TABLE,
        IMPORT_TABLE,
        TRUNCATE_TABLE,
        FAILOVER_TABLE,
        FAILOVER_NODE,
    )
}
