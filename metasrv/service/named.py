"""Nodes and regions as requests name them: what an id looks like, and which region it is. Pure."""

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import RegionRoute
from metasrv_base.errors import NotFound
from metasrv_base.ids import NODE_ID, RegionId, table_of
from metasrv_base.wire.problem.problems import FieldError
from procedures.steps.copies.dropped_regions import is_awake

REGION_ID_MAX = (1 << 63) - 1


def is_region_id(text: str) -> bool:
    decimal = text.isascii() and text.isdecimal() and len(text) <= 19 and str(int(text)) == text
    return decimal and int(text) <= REGION_ID_MAX


def no_region_id(pointer: str) -> FieldError:
    return FieldError(pointer=pointer, detail="a region id is a decimal string below 2^63")


def is_node_id(text: str) -> bool:
    return NODE_ID.fullmatch(text) is not None


def no_node_id(pointer: str) -> FieldError:
    detail = "a node id is a letter or digit, then letters, digits, _ and -, at most 64"
    return FieldError(pointer=pointer, code="invalid-identifier", detail=detail)


def find_region(
    catalog: Catalog, region_id: str, *, awake: bool = False
) -> tuple[CatalogTable, RegionRoute]:
    """A region of a living table. Raises NotFound, for what is no region id too. *awake*: or one of
    a dropped table that a move has woken."""
    if is_region_id(region_id):
        table = catalog.tables.get(table_of(RegionId(int(region_id))))
        if table is not None and (awake or table.dropped_at_ms is None):
            for region in table.route.region_routes:
                is_here = table.dropped_at_ms is None or is_awake(region)
                if region.region_id == region_id and is_here:
                    return table, region
    raise NotFound("not-found", what="region", name=region_id)
