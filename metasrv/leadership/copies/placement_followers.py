"""Search for tables that do not have the numbers of copies of their placement.

A placement is altered by one transaction, whatever number of tables it has. Each of them that names
no numbers of its own is altered afterwards. The catalog's index of numbers tells which: a table is
decoded only if it is one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import USUAL_COPIES, CopyUse
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID, PlacementInfo
from keys.model.tables import TableInfo
from metasrv_base.concurrency.turns import Turns, slices
from procedures.kinds.alter.alter_table import AlterTable
from procedures.kinds.alter.copies_operations import SetCopiesOperation
from procedures.quorum import CopyNumbers, follows, numbers_of

FOUND_MAX = 32  # of one look


@dataclass(slots=True)
class PlacementFollowers:
    """The memory from look to look, of one term."""

    _settled: tuple[object, ...] = field(default=())
    """The parts of the catalog in which every table had the numbers of its placement."""

    def look(self, catalog: Catalog) -> Turns[tuple[AlterTable, ...]]:
        """Returns the alters of some of those tables, at most FOUND_MAX."""
        placing = catalog.placing
        parts = placing.placements, placing.placed, placing.copied, catalog.names
        if len(self._settled) == len(parts) and all(map(_is, parts, self._settled)):
            return ()
        alters: list[AlterTable] = []
        for placement in (placing.default, *_others(catalog)):
            numbers = numbers_of(placement)
            for some in slices(_users(catalog, placement)):
                for table_id in some:
                    use = placing.copied.get(table_id, USUAL_COPIES)
                    if _may_differ(use, numbers):
                        alters += _alter(catalog, table_id, placement)
                    if len(alters) == FOUND_MAX:
                        return tuple(alters)
                yield
        if not alters:
            self._settled = parts
        return tuple(alters)


def _is(left: object, right: object) -> bool:
    return left is right


def _others(catalog: Catalog) -> Iterator[PlacementInfo]:
    """The placements but the default one."""
    for placement in catalog.placing.placements.values():
        if placement.placement_id != DEFAULT_PLACEMENT_ID:
            yield placement


def _users(catalog: Catalog, placement: PlacementInfo) -> Iterator[int]:
    """Ids of tables that may be in the placement: of the default one all, or if its numbers are the
    usual ones those that have others."""
    placing = catalog.placing
    if placement.placement_id != DEFAULT_PLACEMENT_ID:
        return iter(placing.placed_in(placement.placement_id))
    if numbers_of(placement) == CopyNumbers():
        return iter(placing.copied)
    return chain.from_iterable(names.values() for names in catalog.names.values())


def _may_differ(use: CopyUse, numbers: CopyNumbers) -> bool:
    replicas, min_in_sync, own = use
    if "replicas" in own:
        return False
    is_other_minimum = "min_in_sync" not in own and min_in_sync != numbers.min_in_sync
    return replicas != numbers.replicas or is_other_minimum


def _alter(catalog: Catalog, table_id: int, placement: PlacementInfo) -> Iterator[AlterTable]:
    """Yields the alter of a living table of that placement which has other numbers."""
    info: TableInfo = catalog.tables[table_id].info
    numbers = numbers_of(placement)
    is_of_it = (info.placement_id or DEFAULT_PLACEMENT_ID) == placement.placement_id
    if not is_of_it or info.is_hidden or follows(info, numbers):
        return
    operation = SetCopiesOperation(
        placed_replicas=numbers.replicas, placed_min_in_sync=numbers.min_in_sync
    )
    yield AlterTable(
        catalog=info.catalog,
        schema_name=info.schema_name,
        name=info.name,
        table_id=table_id,
        operations=(operation,),
    )
