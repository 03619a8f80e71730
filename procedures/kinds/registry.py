"""Every kind there is: a new procedure is one file beside this one, and one line here."""

from collections.abc import Mapping
from typing import Any

from procedures.kinds.alter.alter_table import ALTER_TABLE
from procedures.kinds.alter.index_kinds import CREATE_INDEX, DROP_INDEX, VALIDATE_INDEX
from procedures.kinds.batch.batch import BATCH
from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY
from procedures.kinds.failover.change_copies import CHANGE_COPIES
from procedures.kinds.failover.decommission_node import DECOMMISSION_NODE
from procedures.kinds.failover.failover_node import FAILOVER_NODE
from procedures.kinds.failover.failover_table import FAILOVER_TABLE
from procedures.kinds.failover.lose_regions import LOSE_REGIONS
from procedures.kinds.failover.switch_leader import SWITCH_LEADER
from procedures.kinds.moves.drain_node import DRAIN_NODE
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.kinds.moves.move_dropped import MOVE_DROPPED
from procedures.kinds.namespaces.alter_catalog import ALTER_CATALOG
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG
from procedures.kinds.namespaces.create_schema import CREATE_SCHEMA
from procedures.kinds.namespaces.drop_catalog import DROP_CATALOG
from procedures.kinds.namespaces.drop_schema import DROP_SCHEMA
from procedures.kinds.namespaces.placements import (
    ALTER_PLACEMENT,
    CREATE_PLACEMENT,
    DROP_PLACEMENT,
    RENAME_PLACEMENT,
)
from procedures.kinds.namespaces.tablespaces import (
    ALTER_TABLESPACE,
    CREATE_TABLESPACE,
    DROP_TABLESPACE,
    RENAME_TABLESPACE,
)
from procedures.kinds.orphans.remove_orphans import REMOVE_ORPHANS
from procedures.kinds.tables.check_table import CHECK_TABLE
from procedures.kinds.tables.create_table import CREATE_TABLE
from procedures.kinds.tables.drop_table import DROP_TABLE
from procedures.kinds.tables.import_table import IMPORT_TABLE
from procedures.kinds.tables.purge_table import PURGE_TABLE
from procedures.kinds.tables.rename_table import RENAME_TABLE
from procedures.kinds.tables.truncate_table import TRUNCATE_TABLE
from procedures.kinds.tables.undrop_table import UNDROP_TABLE
from procedures.machine import Kind

KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind
    for kind in (
        CREATE_CATALOG,
        ALTER_CATALOG,
        DROP_CATALOG,
        CREATE_SCHEMA,
        DROP_SCHEMA,
        CREATE_PLACEMENT,
        ALTER_PLACEMENT,
        RENAME_PLACEMENT,
        DROP_PLACEMENT,
        CREATE_TABLESPACE,
        ALTER_TABLESPACE,
        RENAME_TABLESPACE,
        DROP_TABLESPACE,
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
        DECOMMISSION_NODE,
        BATCH,
        LOSE_REGIONS,
        CHANGE_COPIES,
        ADD_COPY,
        REMOVE_COPY,
        MOVE_COPY,
        MOVE_DROPPED,
        DRAIN_NODE,
        SWITCH_LEADER,
        REMOVE_ORPHANS,
    )
}
