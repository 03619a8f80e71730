"""Folders and tombstones of regions, as the inventories of nodes tell of them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from keys.model.tables import Column, Index, TableInfo, TableRoute
from metasrv.restore.placement import (
    OPENED,
    HeldRoot,
    RegionFate,
    RestoredPlacement,
    is_in_doubt,
    placement_of,
)
from metasrv_base.elements.states import ElementState
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.api.adoption import RegionFinding
from metasrv_base.wire.node.adoption import FoundRoot, Inventory

INDEX_DROPPED = "index-dropped"
COLUMN_DROPPED = "column-dropped"


@dataclass(slots=True)
class FoundNumbers:
    """The highest numbers that the folders of one table name."""

    column: int = 0
    index: int = 0
    schema_version: int = 0

    def take(self, root: FoundRoot) -> None:
        self.column = max(self.column, root.column_max)
        self.index = max(self.index, root.index_max)
        self.schema_version = max(self.schema_version, root.schema_version)


NO_NUMBERS = FoundNumbers()


@dataclass(slots=True)
class FoundRegions:
    """The inventories of several nodes, or a range of each."""

    nodes: set[str] = field(default_factory=set)
    folders: int = 0
    _held: dict[str, list[HeldRoot]] = field(default_factory=dict)
    _roots: dict[int, list[FoundRoot]] = field(default_factory=dict)
    """Roots by table id."""
    _dropped: dict[str, set[str]] = field(default_factory=dict)
    _numbers: dict[int, FoundNumbers] = field(default_factory=dict)
    """Numbers of regions by table id; also of a table of which there are tombstones alone."""

    def take(self, page: Inventory) -> None:
        self.nodes.add(page.node_id)
        roots = page.every_root
        self.folders += len(roots)
        for root in roots:
            self._held.setdefault(root.region_id, []).append(HeldRoot(page.node_id, root))
            self._roots.setdefault(_table(root.region_id), []).append(root)
            self._numbers.setdefault(_table(root.region_id), FoundNumbers()).take(root)
        for region in page.dropped:
            self._dropped.setdefault(region, set()).add(page.node_id)
            self._numbers.setdefault(_table(region), FoundNumbers())

    @property
    def tables(self) -> frozenset[int]:
        """Ids of tables of which a node holds or has dropped a region."""
        return frozenset(self._numbers)

    def has(self, table_id: int) -> bool:
        """Whether a node holds or has dropped a region of it."""
        return table_id in self._numbers

    def numbers(self, table_id: int) -> FoundNumbers:
        return self._numbers.get(table_id, NO_NUMBERS)

    def lacked_columns(self, info: TableInfo) -> tuple[Column, ...]:
        """Public columns that a folder of a later schema lacks, be it one that opens or not."""
        return _lacked(info.columns, info.schema_version, self._roots.get(info.table_id, ()))

    def in_doubt(self, node: str) -> list[int]:
        """Ids of the regions on a node that have several newest folders, there or elsewhere: their
        logs have to be compared."""
        return sorted(
            int(region)
            for region, held in self._held.items()
            if is_in_doubt(held) and any(root.node == node for root in held)
        )

    def take_log_ends(self, page: Inventory) -> None:
        """Takes the folders of one region again, as they are now, with the ends of their logs."""
        for region in {root.region_id for root in page.every_root}:
            others = [held for held in self._held.get(region, ()) if held.node != page.node_id]
            roots = (root for root in page.every_root if root.region_id == region)
            self._held[region] = [*others, *(HeldRoot(page.node_id, root) for root in roots)]

    def placements(self, route: TableRoute) -> list[RestoredPlacement]:
        """The places of its regions that nobody has verified yet."""
        return [
            placement_of(
                region,
                self._held.get(region.region_id, ()),
                self._dropped.get(region.region_id, ()),
            )
            for region in route.region_routes
            if region.unverified
        ]


def dropped_indexes(
    indexes: Sequence[Index], placements: Sequence[RestoredPlacement]
) -> tuple[Index, ...]:
    """Indexes that were dropped after the backup, or not made after all: a region that opens was
    told of it and does not have it any more. Each was told of a public one before it became public;
    of another one if it knows a later one, or that one as dead."""
    roots = [each.root for each in placements if each.fate in OPENED and each.root is not None]
    return tuple(
        index
        for index in indexes
        if any(
            index.id not in root.indexes
            and (index.state is ElementState.PUBLIC or index.id <= root.index_max)
            for root in roots
        )
    )


def dropped_columns(
    columns: Sequence[Column], schema_version: int, placements: Sequence[RestoredPlacement]
) -> tuple[Column, ...]:
    """Columns that were dropped, or replaced, after the backup, which has *columns* in that schema
    version: a region that opens has a later one, and not the column. None of them, as far as nodes
    do not say which columns they have."""
    roots = [each.root for each in placements if each.fate in OPENED and each.root is not None]
    return _lacked(columns, schema_version, roots)


def _lacked(
    columns: Iterable[Column], schema_version: int, roots: Iterable[FoundRoot]
) -> tuple[Column, ...]:
    later = [
        set(root.columns)
        for root in roots
        if root.columns is not None and root.schema_version > schema_version
    ]
    return tuple(
        column
        for column in columns
        if column.state is ElementState.PUBLIC and any(column.id not in ids for ids in later)
    )


def findings(
    info: TableInfo,
    placements: Iterable[RestoredPlacement],
    dropped: Iterable[Index],
    columns: Iterable[Column] = (),
) -> Iterator[RegionFinding]:
    """One for each region that is not where the backup has it, and for each index and each of
    *columns* that was dropped after the backup."""
    for placement in placements:
        if placement.fate is not RegionFate.KEPT:
            yield RegionFinding(
                region_id=placement.region.region_id,
                table=info.full_name,
                fate=placement.fate.value,
                reason=placement.reason,
            )
    for index in dropped:
        yield RegionFinding(
            region_id=None,
            table=info.full_name,
            fate=INDEX_DROPPED,
            reason=f"its index {index.name} was dropped after the backup",
        )
    for column in columns:
        yield RegionFinding(
            region_id=None,
            table=info.full_name,
            fate=COLUMN_DROPPED,
            reason=f"its column {column.name} was dropped after the backup, and comes back; "
            "rows written since have its origin default",
        )


def _table(region_id: str) -> int:
    return table_of(RegionId(int(region_id)))
