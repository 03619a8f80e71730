"""The regions beside which others are placed, for many choices in a row.

Each tablespace is counted once, however many of its regions are placed, and what has been chosen
counts for what is chosen next.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from keys.catalog.tables.partition_groups import Groups, counts_of
from keys.model.tables import TableInfo
from metasrv_base.values.frozen import frozen
from procedures.steps.placing import ALONE, Beside


@frozen
class _Space:
    """The regions of one tablespace."""

    groups: dict[int, Counter[str]]
    """Number -> node -> regions of that group."""
    counts: Counter[str]
    """Node -> regions of all groups."""


@dataclass(slots=True)
class Neighbours:
    """The regions of each tablespace by their nodes, as they are placed."""

    groups_of: Callable[[TableInfo], Groups]
    """`Catalog.copy_groups`, or `Catalog.partition_groups` for leaders."""
    _spaces: dict[int, _Space] = field(default_factory=dict)

    def beside(self, info: TableInfo, number: int) -> Beside:
        """The neighbours of a region, its other copies included."""
        if info.tablespace_id is None:
            return ALONE
        space = self._space(info, info.tablespace_id)
        return Beside(space.groups.get(number, Counter()), space.counts)

    def note(self, info: TableInfo, number: int, node: str) -> None:
        """Counts a region that is to be on *node*."""
        if info.tablespace_id is not None:
            space = self._space(info, info.tablespace_id)
            space.groups.setdefault(number, Counter())[node] += 1
            space.counts[node] += 1

    def _space(self, info: TableInfo, tablespace_id: int) -> _Space:
        space = self._spaces.get(tablespace_id)
        if space is None:
            groups = self.groups_of(info)
            own = {number: Counter(group) for number, group in groups.items()}
            space = self._spaces[tablespace_id] = _Space(own, counts_of(groups))
        return space
