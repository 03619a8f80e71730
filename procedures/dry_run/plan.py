"""The plan of a procedure: what its steps would read, write and order, and what is in the way."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from keys.model.records import Lock, Resource
from keys.model.transitions import ElementChange
from procedures.dry_run.estimates import ASSUMED, Rate
from procedures.elements.shifts import Edit


class Obstacle(StrEnum):
    """The reasons for which a procedure would wait or would be refused."""

    LOCK = "lock"
    ADMISSION = "admission"
    NODE = "node"
    REGION = "region"
    LEASE = "region_lease"
    SCHEMA_LEASE = "schema_lease"
    CHILD = "child"
    COPY = "copy"
    DROPPED_TABLE = "dropped_table"
    POISON = "poison"
    """A lock is held by one whose undo was given up."""
    PAUSED = "paused"
    """A lock is held by one that an operator has paused."""
    MAINTENANCE = "maintenance"
    """All procedures are paused."""
    REFUSED = "refused"
    TOO_LONG = "too_long"
    """The procedure would be longer than a dry run explores."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A blocker: something that the procedure would wait for as things are now."""

    kind: Obstacle
    holder: str
    """The holder: a procedure, a node, a region, or the problem code of a refusal."""
    key: str | None = None
    """Key of a lock or a poison."""
    expires_in_ms: int | None = None
    """Time until it ends by itself."""
    waits: bool = True
    """Whether the change would wait; if not, it would be refused or undone."""
    transaction: str | None = None
    """Id of the transaction open at a holder of a schema lease."""
    transaction_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """A planned order to one node."""

    node: str
    op: str
    region_id: str


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """The rows of one region, read by a job."""

    job: Literal["move", "backfill", "validate", "check"]
    region_id: str
    rows: int | None
    """Rows as last reported by the region's node; None: it has not reported."""
    bytes: int | None


@dataclass(frozen=True, slots=True)
class PlannedVersion:
    """A schema version that a step publishes."""

    table_id: int
    schema_version: int
    shifts: tuple[ElementChange, ...]
    """The elements that it moves."""


@dataclass(frozen=True, slots=True)
class PlannedDrain:
    """A wait for holders: before the step commits, no holder may use the table below that
    version."""

    table_id: int
    schema_version: int
    holders: tuple[str, ...]
    """Holders that must follow, of those that hold a schema lease now."""


@dataclass(slots=True)
class PlannedStep:
    """A planned commit of a step, with its effects."""

    step: str
    cancellable: bool = True
    """Whether a cancel before its commit undoes everything."""
    puts: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    """Events that the catalog log will contain, such as `table.created`."""
    orders: list[PlannedOrder] = field(default_factory=list)
    scans: list[PlannedScan] = field(default_factory=list)
    """If the regions hold any rows by then."""
    publishes: tuple[PlannedVersion, ...] = ()
    edits: tuple[Edit, ...] = ()
    """Changes of names, defaults and options of tables."""
    drains: list[PlannedDrain] = field(default_factory=list)
    eta_ms: int = 0
    """Estimate of its waits and of its reads of rows, in ms."""


@dataclass(slots=True)
class Plan:
    """The same steps as of the real run, in order. Made by `rehearse`; never written by hand."""

    kind: str
    resource: Resource
    locks: tuple[Lock, ...]
    last_cancellable_step: str
    """Last step before whose commit the procedure can be cancelled and undone."""
    steps: list[PlannedStep] = field(default_factory=list)
    children: list["Plan"] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    rate: Rate = ASSUMED
    """Rate by which the duration of its reads is estimated."""
    ends: bool = False
    """Whether the plan reaches the end of the procedure; if not, the last blocker says why."""

    @property
    def eta_ms(self) -> int | None:
        """Estimate for all its steps, in ms; it includes children, which a step waits for. None:
        a blocker has no known end."""
        if any(blocker.expires_in_ms is None for blocker in self.blockers):
            return None
        return sum(step.eta_ms for step in self.steps)

    @property
    def family(self) -> list["Plan"]:
        """This plan, then those of its children and of theirs."""
        return [self, *(plan for child in self.children for plan in child.family)]
