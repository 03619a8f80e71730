"""The views of tables, as data: their columns and what these mean."""

from metasrv.service.views import of_tables
from metasrv.service.views.of_tables import OF_TABLE
from metasrv.service.views.table_units import dropped_tables, living_tables
from metasrv.service.views.view import CatalogUnits, View
from metasrv.service.views.view import ViewColumn as Column

NAMED_BY = ("table_catalog", "table_schema", "table_name", "table_id")
LIVING = CatalogUnits(living_tables)
STATE = Column("state", "string", "Its state in an online change; `public`: the change is over.")

TABLES = View(
    "tables",
    "Tables, without dropped ones.",
    (
        *OF_TABLE,
        Column("table_type", "string", "`BASE TABLE`."),
        Column("engine", "string", "The engine of its regions."),
        Column("table_comment", "string", "Its option `comment`."),
        Column("column_count", "int64", "Columns that users see."),
        Column("index_count", "int64", "Indexes, also those that are not public yet or any more."),
        Column("constraint_count", "int64", "Constraints beside the primary key."),
        Column("region_count", "int64", "Regions."),
        Column("primary_key", "string", "Its columns, in order."),
        Column("partition_method", "string", "`HASH` or `RANGE`; one region is `HASH`."),
        Column("replicas", "int64", "Copies of each region."),
        Column("min_in_sync", "int64", "Copies in sync that writes need."),
        Column("placement", "string", "The placement that it uses."),
        Column("storage_profile", "string", "The storage profile that it uses."),
        Column("tablespace", "string", "The tablespace that it is in."),
        Column("version", "int64", "Rises at every change of the table; the ETag shows it."),
        Column("schema_version", "int64", "Rises at every published step of a schema change."),
        Column("catalog_version", "int64", "The version of the catalog that last changed it."),
        Column("created_at", "timestamp(ms)", "The time at which it was made."),
    ),
    LIVING,
    of_tables.tables_rows,
    narrowed_by=NAMED_BY,
)
COLUMNS = View(
    "columns",
    "Columns that users see, in declared order.",
    (
        *OF_TABLE,
        Column("column_name", "string", "The name of the column."),
        Column("column_id", "int64", "Its id; a rename keeps it."),
        Column("ordinal_position", "int64", "Its place among them, from 1."),
        Column("column_default", "string", "Its default as a constant of SQL; null: none."),
        Column("is_nullable", "string", "`YES` or `NO`."),
        Column("data_type", "string", "Its type in SQL, as `BIGINT`."),
        Column("column_type", "string", "Its type as the API has it, as `int64`."),
        Column("numeric_precision", "int64", "Precision of a number, in digits or bits."),
        Column("numeric_precision_radix", "int64", "10: digits; 2: bits."),
        Column("numeric_scale", "int64", "Digits of an exact number after the point."),
        Column("datetime_precision", "int64", "Digits of a time after the second."),
        Column("primary_key_position", "int64", "Its place in the primary key, from 1."),
    ),
    LIVING,
    of_tables.columns_rows,
    narrowed_by=NAMED_BY,
)
INDEXES = View(
    "indexes",
    "Indexes, also those that are being created or dropped.",
    (
        *OF_TABLE,
        Column("index_name", "string", "The name of the index."),
        Column("index_id", "int64", "Its id, never used again in this table."),
        Column("column_names", "string", "Its columns, in order."),
        Column("is_unique", "string", "`YES` or `NO`."),
        STATE,
    ),
    LIVING,
    of_tables.indexes_rows,
    narrowed_by=NAMED_BY,
)
CONSTRAINTS = View(
    "constraints",
    "Primary keys and constraints. NOT NULL is listed only while it is added or removed.",
    (
        *OF_TABLE,
        Column("constraint_name", "string", "Its name; null: the primary key."),
        Column("constraint_type", "string", "`PRIMARY KEY`, `UNIQUE`, `CHECK` or `NOT NULL`."),
        Column("constraint_id", "int64", "Its id; null: the primary key."),
        Column("column_names", "string", "Its columns, in order."),
        Column("check_clause", "string", "The condition of a check."),
        Column("is_validated", "string", "`YES`: every row is known to satisfy it."),
        STATE,
    ),
    LIVING,
    of_tables.constraints_rows,
    narrowed_by=NAMED_BY,
)
PARTITIONS = View(
    "partitions",
    "Partitions of tables, with the region that holds each, as the catalog has it.",
    (
        *OF_TABLE,
        Column("partition_ordinal_position", "int64", "Its place, from 1."),
        Column("partition_method", "string", "`HASH` or `RANGE`."),
        Column("partition_expression", "string", "The partition columns."),
        Column("lower_bound", "string", "Its first key, as constants of SQL; null: none."),
        Column("upper_bound", "string", "The first key above it; null: none."),
        Column("region_id", "string", "The region that holds it."),
        Column("leader", "string", "The node that leads the region, or led it if it is lost."),
        Column("state", "string", "`opening`, `open` or `lost`."),
    ),
    LIVING,
    of_tables.partitions_rows,
    narrowed_by=(*NAMED_BY, "region_id"),
)
DROPPED_TABLES = View(
    "dropped_tables",
    "Dropped tables that can be undropped until they are purged.",
    (
        *OF_TABLE,
        Column("region_count", "int64", "Regions."),
        Column("version", "int64", "The version of the table."),
        Column("created_at", "timestamp(ms)", "The time at which it was made."),
        Column("dropped_at", "timestamp(ms)", "The time at which it was dropped."),
        Column("dropped_by", "string", "The procedure that dropped it."),
    ),
    CatalogUnits(dropped_tables),
    of_tables.dropped_rows,
    narrowed_by=NAMED_BY,
)
TABLE_VIEWS = (TABLES, COLUMNS, INDEXES, CONSTRAINTS, PARTITIONS, DROPPED_TABLES)
