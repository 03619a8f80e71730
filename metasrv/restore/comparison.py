"""A backup compared with what the nodes of its cluster hold, before anything is written."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from keys.model.tables import Column, Index, TableInfo, TableRoute
from metasrv.restore.backup_facts import BackupItems
from metasrv.restore.found_regions import (
    FoundRegions,
    dropped_columns,
    dropped_indexes,
    findings,
)
from metasrv.restore.placement import RegionFate, RestoredPlacement
from metasrv.restore.restored_values import restored_route
from metasrv_base.wire.api.adoption import RegionFinding

LISTED_MAX = 1_000
"""Regions, indexes and unknown tables that are named; further ones are counted."""


@dataclass(slots=True)
class BackupComparison:
    """`fates`: regions by fate, those included that are where the backup has them."""

    fates: Counter[str] = field(default_factory=Counter)
    findings: list[RegionFinding] = field(default_factory=list)
    """Findings, as an adoption tells of them."""
    unknown_tables: list[int] = field(default_factory=list)
    """Ids of tables that the backup does not have: their folders stay, and nobody serves them."""
    unknown_total: int = 0

    def tell(self, findings: Iterable[RegionFinding]) -> None:
        self.findings += islice(findings, LISTED_MAX - len(self.findings))


@dataclass(slots=True)
class _News:
    """One table of which something is told."""

    placements: list[RestoredPlacement]
    indexes: tuple[Index, ...]
    columns: tuple[Column, ...]


def compared(opened: Callable[[], Iterable[bytes]], inventories: FoundRegions) -> BackupComparison:
    """Reads the file twice: first where regions are, then the names of the tables that are told of.

    Raises Refused `invalid-backup`.
    """
    comparison = BackupComparison()
    new_elements = _news(opened(), inventories, comparison)
    for item in BackupItems(opened()):
        if isinstance(item.value, TableInfo) and item.value.table_id in new_elements:
            table = new_elements[item.value.table_id]
            reported = findings(item.value, table.placements, table.indexes, table.columns)
            comparison.tell(reported)
    return comparison


def _news(
    parts: Iterable[bytes], inventories: FoundRegions, comparison: BackupComparison
) -> dict[int, _News]:
    """Returns the changes of LISTED_MAX tables, by table id. The definition of a table precedes its
    route."""
    table_ids, indexes, new_elements = (
        set[int](),
        dict[int, tuple[Index, ...]](),
        dict[int, _News](),
    )
    lacked = dict[int, tuple[tuple[Column, ...], int]]()
    """Columns that a folder may lack, with the schema version of the backup."""
    for item in BackupItems(parts):
        match item.value:
            case TableInfo() as info if inventories.has(info.table_id):
                if info.indexes:
                    indexes[info.table_id] = info.indexes
                if columns := inventories.lacked_columns(info):
                    lacked[info.table_id] = columns, info.schema_version
            case TableRoute() as route:
                table_ids.add(route.table_id)
                placements = inventories.placements(restored_route(route))
                dropped = dropped_indexes(indexes.get(route.table_id, ()), placements)
                columns = dropped_columns(*lacked.get(route.table_id, ((), 0)), placements)
                comparison.fates.update(each.fate.value for each in placements)
                away = [each for each in placements if each.fate is not RegionFate.KEPT]
                if (away or dropped or columns) and len(new_elements) < LISTED_MAX:
                    new_elements[route.table_id] = _News(away, dropped, columns)
            case _:
                pass
    unknown = sorted(inventories.tables - table_ids)
    comparison.unknown_total, comparison.unknown_tables = len(unknown), unknown[:LISTED_MAX]
    return new_elements
