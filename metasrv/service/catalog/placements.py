"""Placements and tablespaces as the catalog of a version has them: one of them, and the lists."""

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.bodies.placement_shapes import placement_body, tablespace_body
from metasrv.service.catalog.listing import ListRequest, list_name, next_token
from metasrv.service.catalog.reading import CatalogView, Freshness, page_view, view
from metasrv.service.catalog.tables import left_by
from metasrv.service.pages import page_of
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
    name = await list_name(state, request)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    by_name = catalog_view.catalog.placing.placements
    items = [by_name[key] for key in sorted(by_name)]
    page = page_of(items, _by_name, token.after if token else None, request.size)
    version = catalog_view.catalog.version
    body = PlacementList(
        placements=tuple(placement_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=next_token(name, version, page),
    )
    return body, catalog_view


async def tablespaces(
    state: ServerState, catalog: str, request: ListRequest
) -> tuple[TablespaceList, CatalogView]:
    must_be_identifiers(catalog)
    name = await list_name(state, request)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    must_have_catalog(catalog_view.catalog, catalog)
    by_name = catalog_view.catalog.placing.tablespaces_of(catalog)
    items = [by_name[key] for key in sorted(by_name)]
    page = page_of(items, _by_name, token.after if token else None, request.size)
    version = catalog_view.catalog.version
    body = TablespaceList(
        tablespaces=tuple(tablespace_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=next_token(name, version, page),
    )
    return body, catalog_view


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
    """As of a placement."""
    left = left_by(state, version)
    return tablespace_body(_by_id(left, catalog, tablespace_id), left.version)


def _by_id(catalog: Catalog, name: str, tablespace_id: int) -> TablespaceInfo:
    bears = catalog.placing.tablespace_names.get(tablespace_id)
    info = catalog.placing.tablespaces_of(name).get(bears or "")
    if info is None:
        raise NotFound(what="tablespace", name=str(tablespace_id))
    return info


def _by_name(info: PlacementInfo | TablespaceInfo) -> tuple[str]:
    return (info.name,)
