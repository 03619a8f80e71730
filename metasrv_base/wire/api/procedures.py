"""Procedures as clients see them: the resource, its list, and the request that fails nodes over."""

from typing import Any, Literal, get_args

from pydantic import Field

from metasrv_base.wire.api.transitions import TransitionBody
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

ProcedureState = Literal[
    "queued",
    "waiting",
    "running",
    "retrying",
    "paused",
    "cancelling",
    "rolling_back",
    "poisoned",
    "parked",
    "succeeded",
    "cancelled",
    "rolled_back",
    "failed",
]
"""The last four are ends. `poisoned` and `parked` are not: the record stays, and `allowed_actions`
says what may be done."""
ENDS = frozenset({"succeeded", "cancelled", "rolled_back", "failed"})
NO_ENDS: tuple[str, ...] = tuple(state for state in get_args(ProcedureState) if state not in ENDS)

ACTIONS_MAX = 1_024  # regions named in one request
PARALLEL_MAX = 1024  # tables failed over at once


class ResourceBody(WireModel):
    """The object that a procedure works on."""

    type: str
    """`table`, `schema` or `node`."""
    id: str
    name: str


class ProgressBody(WireModel):
    """Progress of the step in flight."""

    phase: str
    done: Int64
    total: Int64
    unit: str
    rate_per_s: float
    eta_s: Int64 | None
    """Null while there is no rate to tell it from."""
    limit_per_s: Int64 | None = None
    """Limit of a reorg's rate, set by an operator or lowered because concurrent statements
    became slow; null: unlimited."""


class WaitingBody(WireModel):
    """Something that the procedure waits for."""

    kind: str
    """`lock`, `admission`, `region_lease`, `schema_lease`, `node`, `child`, `copy`,
    `dropped_table`, `spark`, `maintenance`, `throttle` or `grace`."""
    holder: str
    """The holder: a procedure, a node, a frontend, a job, or the limit of running procedures."""
    key: str | None = None
    """Key of a lock."""
    since: str
    """RFC 3339."""
    expires_in_s: Int64 | None = None
    """Time after which the wait is over whatever the holder does."""
    have: Int64 | None = None
    """Catalog version that the holder of a schema lease has acknowledged, if any."""
    need: Int64 | None = None
    """The one that it must acknowledge."""
    transaction: str | None = None
    """The oldest transaction that keeps the holder at an older version of the table."""
    transaction_age_ms: Int64 | None = None


class BeatBody(WireModel):
    """A finished step."""

    step: str
    at: str
    """End of the step, RFC 3339."""
    ms: Int64
    """Duration in ms."""


class ControlBody(WireModel):
    """A control that somebody applied to a procedure while it was active."""

    action: str
    """`cancel`, `pause`, `resume`, `retry`, `throttle` or `clear`."""
    by: str
    at: str
    """RFC 3339."""
    reason: str | None


class ProcedureError(WireModel):
    """The error of a procedure that is retried, is being undone, or has ended without effect."""

    code: str
    """A problem code."""
    detail: str
    facts: dict[str, Any] = Field(default_factory=dict)


class ProcedureBody(WireModel):
    """A change that is under way, or is over; kept for seven days after its end."""

    id: str
    kind: str
    state: ProcedureState
    done: bool
    """Whether it has ended, in whatever way."""
    resource: ResourceBody
    change: str | None = None
    """The change of the resource in a few words, as `by_name` of an index or `add column country`;
    null: the kind says all."""
    step: str
    """The step in flight, or the last one."""
    progress: ProgressBody | None
    waiting_for: Listed[WaitingBody]
    stalled: bool
    """Whether it runs without progress for a minute."""
    cancelable: bool
    point_of_no_return: bool
    """The procedure has passed its point of no return."""
    allowed_actions: Listed[str]
    """Actions that `POST /v1/procedures/{id}/...` accepts now."""
    attempt: Int64
    """Number of the current attempt of the step in flight."""
    resumed: Int64
    """Number of leaders that have resumed it."""
    parent_id: str | None
    children: Listed[str]
    submitted_by: str
    statement: dict[str, Any] | None = None
    """The request: `method`, `path` and `body`; for a change that the cluster made by itself,
    the reason. Null in lists."""
    submitted_at: str
    """RFC 3339, like the two below."""
    started_at: str | None
    finished_at: str | None
    timeline: Listed[BeatBody]
    """The last 64 finished steps."""
    transitions: Listed[TransitionBody] = ()
    """The last 16 versions of a schema that it published, oldest first."""
    controls: Listed[ControlBody] = ()
    """The last 16, by whom, when and why; of `retry`, only those that were stored."""
    throttle_percent: Int64 = 0
    throttle_rows_per_s: Int64 | None = None
    result: dict[str, Any] | None
    error: ProcedureError | None
    catalog_version: Int64 | None
    """The version its change made; null: it changed nothing (yet)."""


class ProcedureList(WireModel):
    """A page of procedures, newest first."""

    procedures: Listed[ProcedureBody]
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class FailoverRequest(WireModel):
    """`POST /v1/failovers`: either a whole node, or regions by id."""

    node_id: str | None = None
    region_ids: Listed[str] | None = Field(default=None, min_length=1, max_length=ACTIONS_MAX)
    """Decimal; of any tables and leaders."""
    reason: str = Field(min_length=1, max_length=500)
    targets: Listed[str] = Field(default=(), max_length=ACTIONS_MAX)
    """Nodes that may take the regions; empty: any."""
    max_parallel: int = Field(default=PARALLEL_MAX, ge=1, le=PARALLEL_MAX)
    """Tables of a node failed over at once, from reroute to the last row moved: a table beyond it
    is not opened before one of them is over."""
    expected_epoch: PositiveInt64 | None = None
    """The epoch that every region of `region_ids` must have; else the request is refused with
    412."""
    force: bool = False
    """Fences the old leader without waiting for its lease, and overrules maintenance and guard."""


class FailoverBody(WireModel):
    """The procedures of one failover: one for a node; else one for each table and old leader."""

    procedures: Listed[ProcedureBody]


class SwitchLeaderRequest(WireModel):
    """`POST /v1/regions/{region_id}/switch-leader`: another copy in sync leads, while rows are
    written."""

    reason: str = Field(min_length=1, max_length=500)
    to_node: str | None = None
    """The node that is to lead; null: the copy in sync that suits best."""
    expected_epoch: PositiveInt64 | None = None
    """The epoch that the region must have; else the request is refused with 412
    `epoch-mismatch`."""


class AddCopyRequest(WireModel):
    """`POST /v1/regions/{region_id}/copies`: one copy more, as a learner that joins the set once it
    has all rows. A table keeps as many copies as it is to have: one that is too many is removed
    later."""

    reason: str = Field(min_length=1, max_length=500)
    node: str | None = None
    """The node that gets the copy; null: one that suits."""


class MoveCopyRequest(WireModel):
    """`POST /v1/regions/{region_id}/copies/{node}/move`: the copy goes to another node, which has
    all rows before this one gives them up."""

    reason: str = Field(min_length=1, max_length=500)
    to_node: str | None = None
    """The node that gets the copy; null: one that suits."""


class RemoveCopyRequest(WireModel):
    """`POST /v1/regions/{region_id}/copies/{node}/remove`: the copy leaves the region, and its
    folder is deleted."""

    reason: str = Field(min_length=1, max_length=500)
    force: bool = False
    """Removes the copy also if fewer copies are in sync then than the table is to have."""
