"""The plan of a procedure: what its steps would read, write and order, and what is in the way."""

from dataclasses import dataclass, field
from enum import StrEnum

from keys.records import Lock, Resource


class Obstacle(StrEnum):
    """Why a procedure would wait, or would not be taken."""

    LOCK = "lock"
    ADMISSION = "admission"
    NODE = "node"
    REGION = "region"
    LEASE = "region_lease"
    SCHEMA_LEASE = "schema_lease"
    CHILD = "child"
    POISON = "poison"
    """A lock is held by one whose undo was given up."""
    PAUSED = "paused"
    """A lock is held by one that an operator has paused."""
    MAINTENANCE = "maintenance"
    """All procedures are paused."""
    REFUSED = "refused"
    TOO_LONG = "too_long"
    """It would be more than a dry run looks at."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that stands in the way as things are now."""

    kind: Obstacle
    holder: str
    """Who has it: a procedure, a node, a region, or the problem code of a refusal."""
    key: str | None = None
    """Of a lock or a poison."""
    expires_in_ms: int | None = None
    """After this long it is over by itself."""
    waits: bool = True
    """False: it would be refused, or undone, rather than wait."""


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """One order to one node."""

    node: str
    op: str
    region_id: str


@dataclass(slots=True)
class PlannedStep:
    """One commit: the step, and what becomes true with it."""

    step: str
    puts: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    """What the catalog log will say, as `table.created`."""
    orders: list[PlannedOrder] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    """Regions whose borrowed rows a job would bring over, if they hold any."""


@dataclass(slots=True)
class Plan:
    """The same steps as of the real run, in order. Made by `rehearse`; never written by hand."""

    kind: str
    resource: Resource
    locks: tuple[Lock, ...]
    last_cancellable_step: str
    """Until its commit the procedure can be cancelled, and is undone."""
    steps: list[PlannedStep] = field(default_factory=list)
    children: list["Plan"] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    ends: bool = False
    """Whether the plan reaches the end of the procedure; if not, the last blocker says why."""

    @property
    def family(self) -> list["Plan"]:
        """This plan, then those of its children and of theirs."""
        return [self, *(one for child in self.children for one in child.family)]
