"""Nodes and regions as the leader knows them: the catalog's word beside the nodes' reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.cluster import Cordon, NodeRecord
from keys.model.tables import RegionRoute
from metasrv.leadership.orphans.folder_survey import HeldFolder, surveyed
from metasrv.nodes.status import HeldBack, NodeStatus
from metasrv.service.bodies.shapes import Addresses, region_body, time_of
from metasrv.service.catalog.listing import ListRequest, list_name, next_token
from metasrv.service.catalog.reading import CatalogView, Freshness, page_view, view
from metasrv.service.named import find_region, is_node_id, is_region_id
from metasrv.service.pages import page_of
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import Turns, by_turns, slices
from metasrv_base.errors import NotFound
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.api.cluster import (
    CordonBody,
    FailoverHeldBody,
    NodeBody,
    NodeDetailBody,
    NodeList,
    OrphanList,
    QuarantinedFolder,
    RegionBody,
    RegionList,
    RemovalBody,
    UnclaimedFolder,
)
from metasrv_base.wire.node.nodes import RegionStat
from procedures.steps.orphans.judging import Judgement

REGIONS_TOLD_MAX = 1_000  # of one node; others are in pages of /v1/regions
LOOKED_AT_ONCE = 4_096  # tables, some 8 ms; for each slice as many are put in order as a page has
Reports = Mapping[str, Mapping[str, RegionStat]]
"""Node -> region id -> what the node last said of it."""


@dataclass(frozen=True, slots=True)
class RegionFilter:
    node: str | None = None
    table_id: int | None = None


async def nodes(state: ServerState) -> NodeList:
    term = await state.leading()
    catalog = state.follower.catalog
    return NodeList(nodes=tuple(node_body(status, catalog) for status in term.nodes.statuses()))


async def node(state: ServerState, node_id: str) -> NodeDetailBody:
    """Raises NotFound for a node that never registered."""
    term = await state.leading()
    if not is_node_id(node_id):
        raise NotFound("not-found", what="node", name=node_id)
    status = term.nodes.node(node_id)
    shown = nsmallest(REGIONS_TOLD_MAX, status.regions)
    return NodeDetailBody(
        **dict(node_body(status, state.follower.catalog)),
        regions=tuple(status.regions[region] for region in shown),
    )


async def orphans(state: ServerState, node_id: str, first: int) -> OrphanList:
    """Compares one page of the node's folders with the catalog. Raises NotFound, as the node
    answers, and Conflict `wrong-cluster` if another node does."""
    term = await state.leading()
    if not is_node_id(node_id):
        raise NotFound("not-found", what="node", name=node_id)
    survey = await surveyed(term, node_id, first, state.clock.wall_ms())
    retention_ms = term.settings.values.orphan_retention_ms
    shown = (_unclaimed(each) for each in survey.folders if not each.is_claimed)
    return OrphanList(
        node_id=node_id,
        catalog_version=survey.catalog_version,
        folders=tuple(shown),
        quarantined=tuple(_in_quarantine(each, retention_ms) for each in survey.held),
        next=survey.page.next,
    )


def _unclaimed(judgement: Judgement) -> UnclaimedFolder:
    folder = judgement.folder
    return UnclaimedFolder(
        root=folder.root,
        region_id=None if folder.region_id is None else str(folder.region_id),
        epoch=folder.epoch,
        fenced_at=None if folder.fenced_ms is None else time_of(folder.fenced_ms),
        proof=judgement.orphan,
        wait=judgement.wait,
    )


def _in_quarantine(folder: HeldFolder, retention_ms: int) -> QuarantinedFolder:
    held, judgement = folder.held, folder.judgement
    wait = "claimed" if judgement.is_claimed else judgement.wait
    return QuarantinedFolder(
        root=held.folder.root,
        path=held.path,
        region_id=held.folder.region_id,
        quarantined_at=time_of(held.at_ms),
        deleted_after=time_of(held.at_ms + retention_ms),
        bytes=held.bytes,
        proof=judgement.orphan,
        wait=wait,
    )


def node_body(status: NodeStatus, catalog: Catalog) -> NodeBody:
    """Looks at no region, except at those that a removed node brought back."""
    node = status.node
    return NodeBody(
        id=node.node_id,
        role=node.role,
        state=status.state.value,
        address=node.address,
        zone=node.zone,
        root=node.root,
        version=node.version,
        incarnation=node.incarnation,
        registered_at=time_of(node.registered_at_ms),
        phi=round(status.phi, 3),
        heard_ms_ago=status.heard_ms_ago,
        lease_left_ms=status.lease_left_ms,
        cordon=_cordon_body(node.cordon),
        labels=node.labels,
        dead_since=None if node.dead_since_ms is None else time_of(node.dead_since_ms),
        removal=_removal_body(status),
        quarantined=_quarantined(node, catalog),
        failover_held=_held_body(status.held),
        principal=node.principal,
        resources=status.resources,
        leads=catalog.led_by(node.node_id),
        reported=status.reported,
    )


def _cordon_body(cordon: Cordon | None) -> CordonBody | None:
    if cordon is None:
        return None
    return CordonBody(reason=cordon.reason, by=cordon.by, at=time_of(cordon.at_ms))


def _removal_body(status: NodeStatus) -> RemovalBody | None:
    returned = status.node.returned
    removal = status.removal if returned is None else returned.removal
    if removal is None:
        return None
    return RemovalBody(
        reason=removal.reason, by=removal.by, at=time_of(removal.at_ms), lost=removal.lost
    )


def _quarantined(node: NodeRecord, catalog: Catalog) -> tuple[str, ...]:
    """Returns the folders that a returned node brought back, except those of regions it leads."""
    if node.returned is None:
        return ()
    return tuple(folder for folder in node.returned.folders if not _is_led(folder, node, catalog))


def _is_led(folder: str, node: NodeRecord, catalog: Catalog) -> bool:
    region_id = folder.rpartition("-")[0]
    if not is_region_id(region_id):
        return False
    table = catalog.tables.get(table_of(RegionId(int(region_id))))
    regions = table.route.region_routes if table else ()
    root = f"{node.root}/regions/{folder}"
    return any(route.leader == node.node_id and route.root == root for route in regions)


def _held_body(held: HeldBack | None) -> FailoverHeldBody | None:
    if held is None:
        return None
    return FailoverHeldBody(
        reason=held.hold.reason,
        since=time_of(held.since_ms),
        until=None if held.hold.until_ms is None else time_of(held.hold.until_ms),
        ends=held.hold.ends,
    )


async def region(
    state: ServerState, region_id: str, freshness: Freshness
) -> tuple[RegionBody, CatalogView]:
    """A region of a living table. Raises NotFound."""
    reports = await node_reports(state)
    catalog_view = await view(state, freshness)
    table, route = find_region(catalog_view.catalog, region_id)
    return _shape(table, route, await state.addresses.known(), reports), catalog_view


async def regions(
    state: ServerState, request: ListRequest, only: RegionFilter
) -> tuple[RegionList, CatalogView]:
    """Regions by id: those of a node, of a table, or all."""
    reports = await node_reports(state)
    name = await list_name(state, request, only.node, only.table_id)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    after = token.after if token else None
    items = await by_turns(
        _chosen(catalog_view.catalog, only, int(after[0]) if after else 0, request.size)
    )
    page = page_of(items, _place, after, request.size)
    addresses = await state.addresses.known()
    body = RegionList(
        regions=tuple(_shape(table, route, addresses, reports) for table, route in page.items),
        catalog_version=catalog_view.catalog.version,
        next_page_token=next_token(name, catalog_view.catalog.version, page),
    )
    return body, catalog_view


async def node_reports(state: ServerState) -> Reports:
    """The regions of all nodes, as each last reported them."""
    term = await state.leading()
    return {status.node.node_id: status.regions for status in term.nodes.statuses()}


def _chosen(
    catalog: Catalog, only: RegionFilter, after: int, size: int
) -> Turns[list[tuple[CatalogTable, RegionRoute]]]:
    """Returns regions in order, enough of them for a page above the region *after*: each table has
    one or more that are asked for, but of the first, and of none other, all may be below."""
    first = table_of(RegionId(after))
    tables = catalog.tables.values() if only.node is None else catalog.on_node(only.node)
    chosen: list[CatalogTable] = []
    for some in slices(tables, LOOKED_AT_ONCE):
        living = (
            table
            for table in some
            if table.info.table_id >= first and only.table_id in (None, table.info.table_id)
            if table.dropped_at_ms is None
            if catalog.is_visible(table.info.catalog, table.info.schema_name)
            if only.node is None or _leads(only.node, table)
        )
        chosen = nsmallest(size + 2, [*chosen, *living], key=lambda table: table.info.table_id)
        yield
    return [
        (table, route)
        for table in chosen
        for route in table.route.region_routes
        if only.node in (None, route.leader)
    ]


def _leads(node: str, table: CatalogTable) -> bool:
    """Whether it leads a region of the table, and does not have copies alone."""
    return any(route.leader == node for route in table.route.region_routes)


def _place(item: tuple[CatalogTable, RegionRoute]) -> tuple[int]:
    return (int(item[1].region_id),)


def _shape(
    table: CatalogTable, route: RegionRoute, addresses: Addresses, reports: Reports
) -> RegionBody:
    return RegionBody(
        **region_body(route, addresses).model_dump(),
        table_id=table.info.table_id,
        table=table.info.full_name,
        root=route.root,
        stat=reports.get(route.leader, {}).get(route.region_id),
    )
