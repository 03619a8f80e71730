"""The views of the cluster, as data: their columns and what these mean."""

from metasrv.service.views import live_units, of_cluster
from metasrv.service.views.of_tables import OF_TABLE
from metasrv.service.views.table_units import living_tables
from metasrv.service.views.table_views import NAMED_BY
from metasrv.service.views.view import CatalogUnits, LiveUnits, View
from metasrv.service.views.view import ViewColumn as Column

REGIONS = View(
    "regions",
    "Regions, with their nodes by the catalog and the last reports of their leaders.",
    (
        *OF_TABLE,
        Column("region_id", "string", "table_id << 32 | number, in decimal."),
        Column("region_number", "int64", "Its number in the table."),
        Column("leader", "string", "The node that leads it; null while it is lost."),
        Column("leader_address", "string", "URL of the leader; null: it is not registered."),
        Column("followers", "string", "Nodes with copies."),
        Column("in_sync", "string", "Those of them that have every acknowledged row."),
        Column("epoch", "int64", "Rises at every change of leader."),
        Column("state", "string", "`opening`, `open` or `lost`."),
        Column("root", "string", "Folder of its files, on the leader's storage."),
        Column("borrows", "string", "Roots of dead leaders that are still read from."),
        Column("rows", "int64", "Rows as last reported; null: not reported."),
        Column("bytes", "int64", "Bytes of its files as last reported."),
        Column("wal_bytes", "int64", "Bytes of its log as last reported."),
        Column("files", "int64", "Files as last reported."),
    ),
    CatalogUnits(living_tables),
    of_cluster.region_rows,
    needs_reports=True,
    narrowed_by=(*NAMED_BY, "region_id"),
)
NODES = View(
    "nodes",
    "Datanodes, as the leader sees them now.",
    (
        Column("node_id", "string", "The id of the node."),
        Column("role", "string", "`datanode`."),
        Column("state", "string", "`alive`, `suspect`, `dead`, `offline` or `removed`."),
        Column("address", "string", "Its URL."),
        Column("zone", "string", "Its zone."),
        Column("labels", "string", "Its labels, as a JSON object."),
        Column("root", "string", "Folder of its regions."),
        Column("version", "string", "The version of its program."),
        Column("incarnation", "string", "New at every start of its process."),
        Column("registered_at", "timestamp(ms)", "The time of its registration."),
        Column("phi", "float64", "Level of suspicion; from the threshold on it is dead."),
        Column("heard_ms_ago", "int64", "Time since its last heartbeat; null: none yet."),
        Column("lease_left_ms", "int64", "Time until it surely holds no lease."),
        Column("cordon_reason", "string", "Why it takes no new regions; null: it takes them."),
        Column(
            "failover_held", "string", "Why its failover has not begun; null: nothing holds it."
        ),
        Column("dead_since", "timestamp(ms)", "The time since which it is silent, approximately."),
        Column("principal", "string", "The holder of the token that speaks for it."),
        Column("leads", "int64", "Regions that it leads, by the catalog."),
        Column("cpu_cores", "int64", "As last reported, like the four below."),
        Column("memory_bytes", "int64", "Its memory."),
        Column("memory_free_bytes", "int64", "Free memory."),
        Column("disk_bytes", "int64", "Its disk."),
        Column("disk_free_bytes", "int64", "Free disk."),
    ),
    LiveUnits(live_units.node_units),
    of_cluster.node_rows,
)
FRONTENDS = View(
    "frontends",
    "Frontends with schema leases, as the leader sees them now.",
    (
        Column("frontend_id", "string", "The id of the frontend."),
        Column("address", "string", "Its URL."),
        Column("version", "string", "The version of its program."),
        Column("incarnation", "string", "New at every start of its process."),
        Column("registered_at", "timestamp(ms)", "The time of its registration."),
        Column("catalog_version", "int64", "The version of the catalog that it acknowledged."),
        Column("acknowledged_ms_ago", "int64", "Time since that acknowledgement."),
        Column("lease_left_ms", "int64", "Time until it surely holds no lease."),
        Column("pinned_tables", "int64", "Tables that it uses at older schema versions."),
        Column("oldest_pin_ms", "int64", "Age of the oldest transaction that uses one."),
        Column("statement_p99_ms", "float64", "For its statements since the last acknowledgement."),
    ),
    LiveUnits(live_units.frontend_units),
    of_cluster.frontend_rows,
)
PROCEDURES = View(
    "procedures",
    "Procedures under way, and those that are over; the newest first.",
    (
        Column("procedure_id", "string", "The id of the procedure."),
        Column("kind", "string", "Its kind, as `create_table`."),
        Column("state", "string", "Its state, as `running` or `succeeded`."),
        Column("resource_type", "string", "The type of the object that it changes."),
        Column("resource_id", "string", "The id of that object."),
        Column("resource_name", "string", "The name of that object."),
        Column("step", "string", "The step in flight, or the last one."),
        Column("is_done", "boolean", "Whether it has ended, in whatever way."),
        Column("phase", "string", "The phase of the step in flight."),
        Column("progress_done", "int64", "Units that are done of the step in flight."),
        Column("progress_total", "int64", "Units of the step in flight."),
        Column("progress_unit", "string", "The unit, as `rows`."),
        Column("waiting_for", "string", "What it waits for; null: nothing."),
        Column("is_stalled", "boolean", "Whether it runs without progress for a minute."),
        Column("attempt", "int64", "Number of the current attempt of the step."),
        Column("resumed", "int64", "Number of leaders that have resumed it."),
        Column("parent_id", "string", "The procedure that began it."),
        Column("submitted_by", "string", "The principal."),
        Column("submitted_at", "timestamp(ms)", "The time of its submission."),
        Column("started_at", "timestamp(ms)", "The time at which its first step began."),
        Column("finished_at", "timestamp(ms)", "The time of its end."),
        Column("error_code", "string", "The code of its error."),
        Column("error_detail", "string", "Its error as text."),
        Column("catalog_version", "int64", "The version that its change made."),
    ),
    LiveUnits(live_units.procedure_units),
    of_cluster.procedure_rows,
    narrowed_by=("state", "kind", "parent_id"),
)
LOCKS = View(
    "locks",
    "Locks of procedures: a row for each holder, and for each that waits.",
    (
        Column("lock_key", "string", "The key, as `table:1024`."),
        Column("procedure_id", "string", "The procedure."),
        Column("kind", "string", "The kind of the procedure."),
        Column("mode", "string", "`shared` or `exclusive`."),
        Column("is_held", "string", "`YES`: it holds all its locks; `NO`: it waits."),
        Column("queue_position", "int64", "Its place among those that wait, from 1."),
    ),
    LiveUnits(live_units.lock_units),
    of_cluster.lock_rows,
)
VERSIONS = View(
    "versions",
    "Changes of the catalog as far back as its log, one row for each request; the newest first.",
    (
        Column("version", "int64", "The last version of the catalog that it made."),
        Column("first_version", "int64", "The first one."),
        Column("version_count", "int64", "Number of versions that it made."),
        Column("committed_at", "timestamp(ms)", "Commit of the last version."),
        Column("changed_by", "string", "The principal; null: the bootstrap."),
        Column("request_id", "string", "The id of the request."),
        Column("procedure_id", "string", "Its procedure."),
        Column("operation_count", "int64", "Number of differences that are visible now."),
        Column("description", "string", "The change in one line."),
    ),
    LiveUnits(live_units.version_units, is_leaders=False, is_versioned=True),
    of_cluster.version_rows,
)
SETTINGS = View(
    "settings",
    "Settings that operators change while the service runs.",
    (
        Column("name", "string", "The name of the setting."),
        Column("value", "string", "Its value, as JSON."),
        Column("default_value", "string", "Its default, as JSON."),
        Column("unit", "string", "The unit."),
        Column("meaning", "string", "What it does."),
        Column("version", "int64", "Rises at every change; 0: never changed."),
        Column("changed_by", "string", "Who changed it last."),
        Column("changed_at", "timestamp(ms)", "The time of that change."),
    ),
    LiveUnits(live_units.setting_units, is_leaders=False),
    of_cluster.setting_rows,
)
CLUSTER_VIEWS = (REGIONS, NODES, FRONTENDS, PROCEDURES, LOCKS, VERSIONS, SETTINGS)
