"""Placements and tablespaces as the catalog of a version has them: one of them, and the lists."""

from collections.abc import Iterable

from keys.catalog.catalog import Catalog
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.bodies.placement_shapes import placement_body, tablespace_body
from metasrv.service.catalog.listing import ListRequest, names_page
from metasrv.service.catalog.reading import CatalogView, Freshness, view
from metasrv.service.catalog.tables import left_by
from metasrv.service.requests.ddl_request import must_be_identifiers, must_have_catalog
from metasrv.service.requests.placing_names import (
    FullTablespaceName,
    placement_named,
    tablespace_named,
)
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from metasrv_base.wire.api.placing.placements import (
    PlacementBody,
    PlacementList,
    TablespaceBody,
    TablespaceList,
)


async def placement(
    state: ServerState, name: str, freshness: Freshness
) -> tuple[PlacementBody, CatalogView]:
    must_be_identifiers(name)
    catalog_view = await view(state, freshness)
    info = placement_named(catalog_view.catalog, name)
    return placement_body(info, catalog_view.catalog.version), catalog_view


async def tablespace(
    state: ServerState, name: FullTablespaceName, freshness: Freshness
) -> tuple[TablespaceBody, CatalogView]:
    catalog_view = await view(state, freshness)
    info = tablespace_named(catalog_view.catalog, name)
    return tablespace_body(info, catalog_view.catalog.version), catalog_view


async def placements(state: ServerState, request: ListRequest) -> tuple[PlacementList, CatalogView]:
    page = await names_page(state, request, lambda catalog: catalog.placing.placements.values())
    version = page.view.catalog.version
    body = PlacementList(
        placements=tuple(placement_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=page.next_page_token,
    )
    return body, page.view


async def tablespaces(
    state: ServerState, catalog: str, request: ListRequest
) -> tuple[TablespaceList, CatalogView]:
    must_be_identifiers(catalog)

    def tablespaces_of(of: Catalog) -> Iterable[TablespaceInfo]:
        must_have_catalog(of, catalog)
        return of.placing.tablespaces_of(catalog).values()

    page = await names_page(state, request, tablespaces_of)
    version = page.view.catalog.version
    body = TablespaceList(
        tablespaces=tuple(tablespace_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=page.next_page_token,
    )
    return body, page.view


def made_placement(state: ServerState, placement_id: int, version: int | None) -> PlacementBody:
    """The placement as a change left it. Raises NotFound if it is gone and that version too."""
    catalog = left_by(state, version)
    info = catalog.placing.placement(placement_id)
    if info is None:
        raise NotFound(what="placement", name=str(placement_id))
    return placement_body(info, catalog.version)


def made_tablespace(
    state: ServerState, catalog: str, tablespace_id: int, version: int | None
) -> TablespaceBody:
    """Returns the tablespace as a change left it. Raises NotFound if it is gone and that version
    too."""
    left = left_by(state, version)
    return tablespace_body(_by_id(left, catalog, tablespace_id), left.version)


def _by_id(catalog: Catalog, name: str, tablespace_id: int) -> TablespaceInfo:
    current_name = catalog.placing.tablespace_names.get(tablespace_id)
    info = catalog.placing.tablespaces_of(name).get(current_name or "")
    if info is None:
        raise NotFound(what="tablespace", name=str(tablespace_id))
    return info
