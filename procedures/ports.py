"""The world as a procedure sees it: small ports, so that one code runs in production and in tests.

Kv, Clock and Ids are ports of their own layers (keys/store/kv.py, metasrv_base/clock.py,
metasrv_base/ids.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from keys.commit.committer import Committed
from keys.commit.txn import Txn
from keys.model.origin import Origin
from keys.model.records import ProcedureOutcome
from keys.model.transitions import LateHolder
from keys.store.kv import TXN_BYTES_MAX, TXN_OPS_MAX
from metasrv_base.engines import LSM
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.node.adoption import Inventory
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.orders import Order, OrderResult


@frozen
class Sender:
    """The sender of an order, named in the order to the node."""

    procedure: str
    step: str


class NodeOrders(Protocol):
    """Orders to nodes, one request per node and call. Idempotent by region, epoch and kind.

    The adapter fills in term and order number, and grants the lease that goes with create and open.
    """

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        """Sends orders and returns their results, in order; a failed order has its error there.

        Raises Unavailable if the node never saw them, Unknown if it perhaps did, Conflict if it
        refused the term. Sending them again is right after each of these.
        """
        ...

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        """Returns what the region open on *node* still reads from other roots."""
        ...

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        """Files that hold all rows of the region as of an open mark: asked again, perhaps others,
        with the same rows. *whole*: the entries of all indexes too, also of unknown ones.

        Raises NotFound if the region is not open at *node*, or has no mark of that name."""
        ...

    async def fetched(self, node: str, region_id: str) -> FetchBody | None:
        """Returns the files that the copy on *node* fetches now; None: it fetches none. Raises as
        the node answers, and Unavailable."""
        ...

    async def inventory(self, node: str, region_id: int) -> Inventory:
        """Returns the folders of a region on the disk of *node*. Raises as the node answers, and
        Unavailable."""
        ...


class Commits(Protocol):
    """Receiver of the writes of steps: the leader's committer, or the draft of a dry run."""

    async def commit(
        self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
    ) -> Committed:
        """Raises what Committer.commit raises."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """The room of one transaction of metadata beside the record of its procedure. A batch that is
    larger happens in parts."""

    operations: int = TXN_OPS_MAX - 12
    """Log, version, record, history and fence take the rest."""
    size_bytes: int = TXN_BYTES_MAX - (16 << 10)
    record_bytes: int = TXN_BYTES_MAX // 4
    """State and request of a record from which items of the state are in parts: its locks may take
    twice as much again."""


class Leases(Protocol):
    """Leases that this leader has granted, which bound how long an old holder may act on its
    own."""

    def free_in_ms(self, node: str, region_ids: Sequence[str]) -> int:
        """Milliseconds until no lease of *node* on any of *region_ids* can be alive; 0: now.

        Ask after the route that no longer names *node* has been applied (docs/protocols.md P4).
        """
        ...


@dataclass(frozen=True, slots=True)
class Behind:
    """A holder of a schema lease that may still use an older version of a table than it should."""

    holder: str
    have: int | None
    """The catalog version it acknowledged; None: this leader has not heard it yet."""
    need: int
    """The one it must acknowledge."""
    expires_in_ms: int
    """Time until its lease has surely expired; then its registration is removed and the wait
    ends."""
    transaction: str | None = None
    """Oldest transaction that keeps it there; None: the holder has not acknowledged the version
    yet."""
    transaction_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """The course of a wait for holders, for the history."""

    holders: int
    """Registered when it was over, all of which had followed."""
    late: tuple[LateHolder, ...] = ()
    """Holders that had not followed when the wait began."""


class SchemaSync(Protocol):
    """Progress of the holders of schema leases towards a published version (docs/protocols.md P6).

    Ask after the transition has been committed. It says how long to wait; what makes the next
    step safe is the floor that the regions have raised.
    """

    def behind(self, table_id: int, schema_version: int | None) -> tuple[Behind, ...]:
        """Holders that may still use the table below *schema_version*, by id; for a version that
        is not published yet, all of them. *schema_version* None: holders that may begin to use
        the table without its last change."""
        ...

    def statement_p99_ms(self) -> float | None:
        """The p99 of recent statements at the slowest holder, in ms; None: there were none."""
        ...

    def must_be_sound(self, table_id: int) -> None:
        """Raises Unavailable("schema-audit-failed") while a holder is known to use a version of
        the table that nobody used any more: then nothing more of it is published."""
        ...

    async def drained(self, table_id: int, schema_version: int | None) -> Drain:
        """Returns once nobody is behind: each holder has acknowledged the version and uses none
        below it, or its lease has ended and its registration is removed. Other tables, and
        holders that register later, delay it not. A hidden table has one more version, in which
        nobody can use it."""
        ...


@frozen
class NodeView:
    """A node as placement sees it: facts at one moment."""

    node_id: str
    zone: str
    root: str
    alive: bool
    regions: int
    """Regions of which it has a copy, by the catalog, plus those of procedures on their way."""
    disk_free_bytes: int
    cordoned: bool = False
    """An operator wants no new region on it."""
    engines: tuple[str, ...] = (LSM,)
    """Names of the region engines that it has."""
    cpu_cores: int = 0
    memory_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """Set by operators, for node filters."""
    restarted: Mapping[str, int] = field(default_factory=dict)
    """Regions with copies that it led before its process started again, with their epochs: it opens
    them at none of these (docs/protocols.md P3.5)."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Regions whose files it has lost, as it reports them, with the epochs of its last orders."""

    answers: bool = True
    """Whether it answers orders. False for one that may live, and has answered none for a while:
    nothing is placed on it while others have room."""

    @property
    def takes_orders(self) -> bool:
        return self.alive and self.answers

    def has_restarted(self, region_id: str, epoch: int) -> bool:
        """Whether it lives, and does not open the region, which it led, at this epoch any more."""
        return self.alive and self.restarted.get(region_id) == epoch

    def has_lost(self, region_id: str, epoch: int) -> bool:
        """Whether it lives, and reports the files of the region as lost at this epoch."""
        return self.alive and self.lost.get(region_id) == epoch


class Placement(Protocol):
    """Facts about the nodes; which of them to take is a pure function
    (procedures/steps/placing.py).
    """

    def nodes(self) -> tuple[NodeView, ...]: ...

    async def reload(self, node: str) -> None:
        """Forgets the node if its registration has been deleted from the store. Idempotent."""
        ...


Progress = Callable[[int, int, str], None]


class Jobs(Protocol):
    """Work for Spark. An attempt writes under a path of its own and is adopted or ignored.

    A job raises Unavailable if it could not start or was not carried out, `job-failed` if it was
    and does not work, `region-lost` if an input is gone or damaged; what it wrote is then a
    leaving. When its caller is cancelled, so is the job.
    """

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult: ...

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        """Progress counts the rows of the snapshot's files."""
        ...

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        """Runs a check of rows like `backfill`. Raises Refused for a check that cannot be
        evaluated."""
        ...

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        """Runs a check of a table like `validate`."""
        ...

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        """Progress counts rows of the files, of each a half when it is read and a half when it is
        written. Raises Refused for files that the table cannot take."""
        ...

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        """Sets the read rate of a waiting or running job, in rows/s; None: unlimited. Ignores an
        unknown job."""
        ...


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """The end of a child procedure."""

    procedure: str
    outcome: ProcedureOutcome
    error_code: str | None
    result: dict[str, object] | None


class Children(Protocol):
    """Child procedures under ids that the parent's record holds, or that follow from it."""

    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        """Does nothing if a procedure of that id exists or has existed."""
        ...

    async def end_of(self, procedure: str) -> ChildEnd | None:
        """Returns the end of a child; None if it has not ended, or was never submitted."""
        ...

    async def under_way(self) -> tuple[str, ...]:
        """Ids of the active children, oldest first, whichever attempt or step submitted them."""
        ...

    async def at_most(self, left: int) -> None:
        """Returns once no more than *left* are under way."""
        ...

    async def wait(self, procedures: Sequence[str]) -> tuple[ChildEnd, ...]:
        """Waits until all of *procedures* have ended."""
        ...
