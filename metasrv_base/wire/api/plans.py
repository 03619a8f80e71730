"""Plans as clients see them: what a change would do, and what is in its way (`dry_run=true`)."""

from typing import Literal

from pydantic import JsonValue

from metasrv_base.wire.api.procedures import ResourceBody
from metasrv_base.wire.api.transitions import ShiftBody
from metasrv_base.wire.model import Int64, Listed, WireModel

BlockerKind = Literal[
    "lock",
    "admission",
    "node",
    "region",
    "region_lease",
    "schema_lease",
    "child",
    "copy",
    "dropped_table",
    "poison",
    "paused",
    "maintenance",
    "refused",
    "too_long",
]


class PlannedLockBody(WireModel):
    """A lock, held from its grant to the end of the procedure."""

    key: str
    """Key of the lock, such as `table:1024`."""
    mode: Literal["shared", "exclusive"]


class BlockerBody(WireModel):
    """A blocker: something that the change would wait for as things are now."""

    kind: BlockerKind
    holder: str
    """The holder: a procedure, a node, a region, or the problem code of a refusal."""
    key: str | None = None
    """Key of a lock or a poison."""
    expires_in_s: Int64 | None = None
    """Time until it ends by itself."""
    waits: bool
    """Whether the change would wait; if not, it would be refused or undone."""
    transaction: str | None = None
    """The oldest transaction that is open at a holder of a schema lease."""
    transaction_age_ms: Int64 | None = None


class PlannedOrderBody(WireModel):
    """An order to a node."""

    node: str
    op: str
    region_id: str


class PlannedScanBody(WireModel):
    """The rows of one region, read by Spark."""

    job: Literal["move", "backfill", "validate", "check"]
    region_id: str
    rows: Int64 | None
    """Rows as last reported by the region's node, like `bytes`; null: it has not reported."""
    bytes: Int64 | None


class PlannedVersionBody(WireModel):
    """A schema version that a step publishes, one above the last."""

    table_id: Int64
    schema_version: Int64
    shifts: Listed[ShiftBody]
    """The elements that it moves; none: it only ends what is absent already."""


class PlannedEditBody(WireModel):
    """A name, a default or an option of a table that gets another value."""

    what: Literal["column", "table"]
    name: str
    """Name before the change."""
    attribute: str
    """`name`, `default` or `option NAME`."""
    before: JsonValue
    """Null: there was none."""
    after: JsonValue


class PlannedDrainBody(WireModel):
    """A wait for holders: before the step commits, no holder may use the table below that
    version."""

    table_id: Int64
    schema_version: Int64
    holders: Listed[str]
    """Holders of schema leases, as of now, that must follow. They do so within milliseconds,
    except those among the blockers."""


class PlannedStepBody(WireModel):
    """One step, with the effects of its commit."""

    step: str
    puts: Listed[str]
    """Keys of the store."""
    deletes: Listed[str]
    log: Listed[str]
    """Events that the catalog log will contain, such as `table.created`."""
    orders: Listed[PlannedOrderBody]
    """Given to nodes before it commits."""
    publishes: Listed[PlannedVersionBody] = ()
    edits: Listed[PlannedEditBody] = ()
    drains: Listed[PlannedDrainBody] = ()
    scans: Listed[PlannedScanBody] = ()
    """Scans that happen only if the regions hold rows by then."""
    cancellable: bool = True
    """Whether a cancel before it commits undoes everything."""
    eta_s: Int64 = 0
    """Estimate of its waits and of its reads of rows."""


class PlannedProcedure(WireModel):
    """A procedure that does not exist: its steps as they would run now."""

    kind: str | None
    """Null: what is asked for stands already, and there is nothing to do."""
    resource: ResourceBody
    locks: Listed[PlannedLockBody] = ()
    steps: Listed[PlannedStepBody] = ()
    last_cancellable_step: str | None = None
    """Last step before whose commit a cancel undoes everything."""
    blockers: Listed[BlockerBody] = ()
    scan_rows: Int64 = 0
    """All that its steps read, as far as it is known; like `scan_bytes`."""
    scan_bytes: Int64 = 0
    scan_rows_per_s: Int64 | None = None
    """Rate by which `eta_s` is estimated, in rows/s. Null: no rows are read."""
    scan_rate_reorgs: Int64 = 0
    """Number of earlier reorgs, of this table or else of any, over which that rate was measured;
    0: it is assumed."""
    eta_s: Int64 | None = 0
    """Estimate for all steps. Null: a blocker has no known end."""
    complete: bool = True
    """Whether `steps` reach the end; if not, the last blocker says what they wait for."""
    children: Listed["PlannedProcedure"] = ()


class PlanBody(PlannedProcedure):
    """Answer of a request with `dry_run=true`: it was judged, and nothing was stored.

    Ids that a create would be given are the next ones, and may be another's by then.
    """

    dry_run: Literal[True] = True
    catalog_version: Int64
    """The version it was judged at."""
    waits_for: Listed[str] = ()
    """Procedures it would wait for, by their locks."""
    keys: Listed[str] = ()
    """All that the steps, those of children too, would put or delete."""
    nodes: Listed[str] = ()
    """All that would be given an order."""
    not_restored: Listed[str] = ()
    """For `POST T/restore`: each part of the earlier version that would not come back, and why."""


class PlansBody(WireModel):
    """The plans of one request that makes several procedures."""

    plans: Listed[PlanBody]
