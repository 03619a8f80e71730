"""The state of an exploration at one moment: the region, the servers, the owner and the reorg."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from metasrv_base.elements.proof.journey import JourneyNode, States
from metasrv_base.elements.proof.protocol import Protocol
from metasrv_base.elements.proof.space import Space, Write

NONE = -1
DONE = -1
DUPLICATE = -2


class OwnerPhase(IntEnum):
    """Progress of the owner with the newest version. A new owner begins with WAITING."""

    WAITING = 0
    DRAINED = 1
    """No server that it counts uses an older one."""
    FLOORED = 2
    """The region takes nothing older."""


class ProofServer(NamedTuple):
    """A frontend. At `version` it can begin and commit any transaction at any moment, so only
    one that it had open when it loaded a newer version is told apart."""

    version: int
    counted: bool
    """Whether the owner waits for it; else its lease has ended, but it may not know."""
    pinned: int
    """The version of its older transaction, or NONE."""


class SentWrite(NamedTuple):
    """A write on its way to the region that no pin speaks of. It names the version of the row
    that was read, so it is gone when another write of that row comes first."""

    version: int
    write: Write


Task: TypeAlias = int
"""State of one row's task: DONE, DUPLICATE, or twice the value read, plus one once it is stale."""


class Job(NamedTuple):
    """A reorg that has its snapshot."""

    version: int
    """The schema version that it works under."""
    tasks: tuple[Task, ...]

    @property
    def is_done(self) -> bool:
        return all(task == DONE for task in self.tasks)


class ProofWorld(NamedTuple):
    db: int
    """Its number in the space."""
    published: int
    """The number of the node of the journey: what is published."""
    phase: OwnerPhase
    floor: int
    """The oldest version that the region takes."""
    servers: tuple[ProofServer, ...]
    sent: SentWrite | None
    job: Job | None


Event: TypeAlias = tuple[Any, ...]
"""A format and its arguments: text is made only of what is shown."""
Step: TypeAlias = tuple[Event, ProofWorld]


@dataclass(frozen=True, slots=True)
class ProofSetting:
    """The constants of an exploration."""

    space: Space
    nodes: tuple[JourneyNode, ...]
    protocol: Protocol

    def states(self, world: ProofWorld, version: int) -> States:
        return self.nodes[world.published].line[version]
