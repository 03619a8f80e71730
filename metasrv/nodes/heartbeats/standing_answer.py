"""An answer to a heartbeat that stays true until something changes."""

from collections.abc import Mapping
from dataclasses import dataclass

from keys.catalog.tables.heads import HeldRegions
from keys.model.cluster import NodeRecord
from metasrv.nodes.heartbeats.region_report import RegionReport


@dataclass(frozen=True, slots=True)
class Basis:
    """The objects that an answer was computed from. Each is replaced by another when it changes,
    so that two are compared at the cost of nothing."""

    held: Mapping[int, HeldRegions] | None
    """The node's regions in the catalog, by table id; None: it has none."""
    report: RegionReport
    node: NodeRecord

    def is_same_as(self, other: "Basis") -> bool:
        return self.held is other.held and self.report is other.report and self.node is other.node


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """An answer that had grants and nothing to order. As long as its basis stands, the same regions
    are granted by its number alone."""

    sequence: int
    since_ms: int
    """A time before its first grant, in monotonic ms of this server."""
    basis: Basis
