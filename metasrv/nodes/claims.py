"""Claims that keep a node in the cluster: routes, dropped tables, borrowed roots and procedures.

The functions are pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.cluster import NodeRecord
from keys.model.records import ProcedureRecord
from keys.model.tables import RegionRoute
from metasrv_base.concurrency.turns import Turns, slices

TOLD_MAX = 16  # of each sort; the others are counted


@dataclass(frozen=True, slots=True)
class DroppedTable:
    table_id: int
    name: str
    dropped_at_ms: int


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that names one node."""

    leads: tuple[str, ...] = ()
    """Regions of living tables that it leads, by id."""
    copies: tuple[str, ...] = ()
    """Regions of living tables, led elsewhere, of which it has a copy, by id."""
    dropped: tuple[DroppedTable, ...] = ()
    """Dropped tables whose regions lie there until they are purged."""
    borrowed: tuple[str, ...] = ()
    """Regions led elsewhere that still read from its root."""
    procedures: tuple[str, ...] = ()
    """Procedures under way, with the node in what they are about to do."""

    @property
    def is_empty(self) -> bool:
        return not (self.leads or self.copies or self.dropped or self.borrowed or self.procedures)

    def lines(self) -> Iterator[str]:
        """Lines for people, as `leads 2 regions: 4398046511104, 4398046511105`."""
        dropped = [f"{table.name} ({table.table_id})" for table in self.dropped]
        sorts = {
            "leads {} regions": self.leads,
            "has copies of {} regions": self.copies,
            "holds {} dropped tables": dropped,
            "is read from by {} regions": self.borrowed,
            "is named by {} procedures": self.procedures,
        }
        for text, names in sorts.items():
            if names:
                more = ", ..." if len(names) > TOLD_MAX else ""
                yield f"{text.format(len(names))}: {', '.join(names[:TOLD_MAX])}{more}"


def claims_on(
    node: NodeRecord, catalog: Catalog, living: Iterable[tuple[str, ProcedureRecord]]
) -> Turns[Claims]:
    """Looks at every region there is: for a person who asks, or a node that is to go."""
    name = node.node_id
    leads: list[str] = []
    copies: list[str] = []
    borrowed: list[str] = []
    dropped: list[DroppedTable] = []
    procedures: list[str] = []
    for tables in slices(catalog.tables.values()):
        for table in tables:
            regions = table.route.region_routes
            here = [region for region in regions if name in region.nodes]
            reading = [region for region in regions if _reads_from(region, node)]
            if table.dropped_at_ms is not None:
                dropped += [_dropped(table, table.dropped_at_ms)] if here or reading else []
            else:
                leads += [region.region_id for region in here if region.leader == name]
                copies += [region.region_id for region in here if region.leader != name]
                borrowed += [region.region_id for region in reading]
        yield
    for records in slices(living):
        procedures += [procedure for procedure, record in records if _names(record.state, name)]
        yield
    return Claims(
        leads=tuple(leads),
        copies=tuple(copies),
        dropped=tuple(dropped),
        borrowed=tuple(borrowed),
        procedures=tuple(procedures),
    )


def _dropped(table: CatalogTable, at_ms: int) -> DroppedTable:
    return DroppedTable(table.info.table_id, table.info.full_name, at_ms)


def _reads_from(region: RegionRoute, node: NodeRecord) -> bool:
    return any(root.startswith(f"{node.root}/") for root in region.borrows)


def _names(value: Any, node: str) -> bool:
    """Whether it stands anywhere in the state of a procedure: chosen before it was submitted."""
    if isinstance(value, dict):
        return any(_names(item, node) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return any(_names(item, node) for item in value)
    return bool(value == node)
