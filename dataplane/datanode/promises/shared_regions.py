"""Regions with copies as the promises between nodes see them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dataplane.datanode.membership.membership import Membership
from dataplane.region.copies.leader_silence import LeaderSilence
from dataplane.region.copies.leader_view import CopyName, LeaderView
from dataplane.region.copies.promises import CopyHere, NodePromises
from dataplane.region.copies.staleness import CommonAt
from metasrv_base.clock import Clock


class PromisedRegion(Protocol):
    """A region with copies that this node leads."""

    region_id: int
    view: LeaderView

    @property
    def receivers(self) -> Mapping[CopyName, str | None]:
        """The other copies, with the addresses of their nodes; None: not known."""
        ...

    def note_answer(self, copy: CopyName) -> None:
        """A copy has promised."""
        ...


class CommonPositions(Protocol):
    """Positions that leaders tell copies, so that these know the age of their rows (P4.6)."""

    def common_of(self, region_id: int, epoch: int) -> int | None:
        """The common sequence of a region that this node leads; None: it may not read it now."""
        ...

    def tell(self, region_id: int, root: str, position: CommonAt) -> None:
        """The leader of a copy of this node says what is common."""
        ...


class SharedRegions(Protocol):
    """The regions of a node."""

    promises: NodePromises

    def led(self) -> Iterable[PromisedRegion]: ...

    def copy_here(self, region_id: int) -> CopyHere | None: ...


@dataclass(frozen=True, slots=True)
class PromisePorts:
    """The parts of a process that its promises use."""

    membership: Membership
    regions: SharedRegions
    clock: Clock
    silence: LeaderSilence
    count: Callable[[str, int], None]
    """Counts promises by outcome."""
    positions: CommonPositions | None = None
    """Positions of its regions; without them no copy is told one, and none answers reads."""
