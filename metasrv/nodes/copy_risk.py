"""Counts of regions that the loss of one more disk endangers."""

from collections.abc import Callable
from dataclasses import dataclass

from keys.model.tables import RegionRoute, TableInfo
from procedures.quorum import majority, minimum_of


@dataclass(slots=True)
class CopyRisk:
    """Counts of regions that are to have several copies."""

    below_minimum: int = 0
    """Regions with fewer copies in sync than acknowledge rows: they take no writes."""
    on_one_disk: int = 0
    """Regions of which one copy is left that has every acknowledged row, and whose disk is not
    lost."""
    minimum_lowered: int = 0
    """Regions that acknowledge rows with fewer copies in sync than a majority of their table's."""

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.below_minimum, self.on_one_disk, self.minimum_lowered

    def count(self, info: TableInfo, region: RegionRoute, is_lost: Callable[[str], bool]) -> None:
        """Counts one region. *is_lost*: whether a node, by id, and its disk are given up."""
        if info.replicas == 1:
            return
        minimum = minimum_of(info, region)
        self.below_minimum += len(region.in_sync) < minimum
        self.minimum_lowered += minimum < majority(info.replicas)
        holders = {*region.in_sync, *(copy.node for copy in region.eligible)}
        self.on_one_disk += sum(not is_lost(node) for node in holders) <= 1

    def take(self, other: "CopyRisk") -> None:
        """Takes the counts of a later survey."""
        self.below_minimum, self.on_one_disk, self.minimum_lowered = other.counts
