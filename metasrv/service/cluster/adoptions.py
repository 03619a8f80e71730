"""Adoption of a node: it leaves the cluster of the backup, and its regions are looked for.

No region is opened while a node of the backup is awaited: the newest files may be on its disk. Then
each table that was restored is compared with the folders on all nodes, and one transaction says of
its regions where they are, above every fence (metasrv/restore/placement.py).
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.change import change, route_changed
from keys.commit.committer import StaleRead
from keys.commit.txn import snapshot
from keys.model.cluster import NodeRecord
from keys.model.log import Entry, TableAltered
from keys.model.origin import Origin
from keys.model.tables import Index, TableInfo, TableInfoKey, TableRoute, TableRouteKey
from metasrv.leadership.term import Term
from metasrv.restore.found_regions import (
    FoundNumbers,
    FoundRegions,
    dropped_indexes,
    findings,
)
from metasrv.restore.placement import OPENED, RestoredPlacement
from metasrv.restore.restored_procedures import BY
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.ids import TableId, region_id
from metasrv_base.wire.api.adoption import AdoptionBody, AdoptNodeRequest, RegionFinding
from metasrv_base.wire.node.adoption import AdoptRequest, Inventory

TABLES_AT_ONCE = 100
"""Tables whose regions are looked for by one request to each node."""
TABLES_MAX = 1_000
"""Tables of one request of an operator; the command goes on with the rest."""
LISTED_MAX = 1_000
LOOKED_AT_ONCE = 10_000
"""Tables between two turns of other tasks."""
RACES_MAX = 5
LAST_NUMBER = (1 << 32) - 1


@dataclass(slots=True)
class SettledRegions:
    """The result of one request."""

    opened: int = 0
    findings: list[RegionFinding] = field(default_factory=list)
    total: int = 0

    def take(
        self, info: TableInfo, placements: Sequence[RestoredPlacement], dropped: Sequence[Index]
    ) -> None:
        self.opened += sum(placement.fate in OPENED for placement in placements)
        for finding in findings(info, placements, dropped):
            self.total += 1
            if len(self.findings) < LISTED_MAX:
                self.findings.append(finding)


async def adopt(
    state: ServerState, context: RequestContext, node_id: str, request: AdoptNodeRequest
) -> AdoptionBody:
    """A repeat goes on where the last one ended. A dry run reads the disks of all nodes, adopted or
    not, and changes nothing.

    Raises Conflict `action-not-allowed` in a cluster that was not restored, NotFound for a node
    that the backup does not have and whose address is not given, and as the node answers.
    """
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        if term.nodes.restored_from is None or term.adopter is None:
            state_now = "the cluster is not one that was restored from a backup"
            raise Conflict("action-not-allowed", action="adopt", state=state_now)
        records = {status.node.node_id: status.node for status in term.nodes.statuses()}
        if not context.dry_run:
            await _adopt_node(term, node_id, records.get(node_id), request.address)
        records = {status.node.node_id: status.node for status in term.nodes.statuses()}
        awaited = [
            name
            for name, record in records.items()
            if record.restored_from is not None and name not in {*request.without, node_id}
        ]
        nodes = [record for name, record in records.items() if name not in request.without]
        settlement, following = _Settlement(state, term, context, nodes), None
        if not awaited or context.dry_run:
            following = await settlement.run(request.after)
        settled = settlement.settled
        return AdoptionBody(
            node_id=node_id,
            awaited=tuple(sorted(awaited)),
            opened=settled.opened,
            findings=tuple(settled.findings),
            findings_total=settled.total,
            next=following,
        )


async def _adopt_node(
    term: Term, node_id: str, record: NodeRecord | None, address: str | None
) -> None:
    """A node that is none of the backup's registers by itself once it is adopted."""
    url = address or (record.address if record is not None else None)
    assert term.nodes.restored_from is not None
    assert term.adopter is not None
    if url is None:
        raise NotFound(what="node", name=node_id)
    if record is not None and record.restored_from is None:
        return  # it was adopted before
    old = term.nodes.restored_from if record is None else record.restored_from
    request = AdoptRequest(cluster_id=term.cluster_id, from_cluster_id=old or "", node_id=node_id)
    await term.adopter.adopt(url, request)
    if record is None:
        return
    cordon = record.cordon
    is_ours = cordon is not None and cordon.by == BY
    update: dict[str, object] = {"address": url, "cordon": None if is_ours else cordon}
    await term.nodes.adopted(node_id, update)


@dataclass(slots=True)
class _Settlement:
    """One request that looks for the regions of restored tables."""

    state: ServerState
    term: Term
    context: RequestContext
    nodes: Sequence[NodeRecord]
    """Nodes whose disks are read."""
    settled: SettledRegions = field(default_factory=SettledRegions)

    async def run(self, after: int) -> int | None:
        """Places the regions of the next TABLES_MAX tables; the last of their ids if there are
        more."""
        due = await _unverified(self.state.follower.catalog, after)
        now, has_more = due[:TABLES_MAX], len(due) > TABLES_MAX
        for start in range(0, len(now), TABLES_AT_ONCE):
            some = now[start : start + TABLES_AT_ONCE]
            inventories = await self._inventories(some[0], some[-1])
            for table_id in some:
                await self._settle(table_id, inventories)
        return now[-1] if has_more else None

    async def _inventories(self, first: int, last: int) -> FoundRegions:
        """Raises what a node answers that cannot be read: its disk may hold the newest files."""
        assert self.term.adopter is not None
        inventories = FoundRegions()
        end = int(region_id(TableId(last), LAST_NUMBER))
        for node in self.nodes:
            start: int | None = int(region_id(TableId(first), 0))
            while start is not None:
                page = await self.term.adopter.inventory(node.address, start, end)
                if page.node_id != node.node_id:
                    reason = f"at {node.address} is node {page.node_id}, not {node.node_id}"
                    raise Conflict("wrong-cluster", node_id=node.node_id, reason=reason)
                inventories.take(page)
                start = None if page.next is None else int(page.next)
        in_doubt = {node.address: inventories.in_doubt(node.node_id) for node in self.nodes}
        pages = await asyncio.gather(*(self._log_ends(*each) for each in in_doubt.items()))
        for page in chain.from_iterable(pages):
            inventories.take_log_ends(page)
        return inventories

    async def _log_ends(self, address: str, regions: Sequence[int]) -> list[Inventory]:
        assert self.term.adopter is not None
        return [await self.term.adopter.log_ends(address, region) for region in regions]

    async def _settle(self, table_id: int, inventories: FoundRegions) -> None:
        keys = TableInfoKey(table_id), TableRouteKey(table_id)
        deadline_ms = self.state.facts.store_deadline_ms
        for left in reversed(range(RACES_MAX)):
            read = await snapshot(self.state.kv, *keys, deadline_ms=deadline_ms)
            info, route = read.get(keys[0]), read.get(keys[1])
            if info is None or route is None:
                return  # dropped meanwhile
            placements = inventories.placements(route)
            dropped = dropped_indexes(info.indexes, placements)
            entries = tuple(
                _entries(info, route, placements, inventories.numbers(table_id), dropped)
            )
            if entries and not self.context.dry_run:
                origin = Origin(by=self.context.principal, request_id=self.context.request_id)
                try:
                    await self.term.committer.commit(change(read, *entries), origin=origin)
                except StaleRead:
                    if left:
                        continue
                    raise
            self.settled.take(info, placements, dropped)
            return


async def _unverified(catalog: Catalog, after: int) -> list[int]:
    ids: list[int] = []
    for number, (table_id, table) in enumerate(catalog.tables.items(), start=1):
        if table_id > after and _is_unverified(table):
            ids.append(table_id)
        if number % LOOKED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return sorted(ids)


def _is_unverified(table: CatalogTable) -> bool:
    regions = table.route.region_routes
    return table.dropped_at_ms is None and any(region.unverified for region in regions)


def _entries(
    info: TableInfo,
    route: TableRoute,
    placements: Sequence[RestoredPlacement],
    numbers: FoundNumbers,
    dropped: Sequence[Index],
) -> Iterator[Entry]:
    yield from _altered(info, numbers, dropped)
    opened = tuple(each.region for each in placements if each.fate in OPENED)
    if opened:
        yield route_changed(route, opened)


def _altered(
    info: TableInfo, numbers: FoundNumbers, dropped: Sequence[Index]
) -> Iterator[TableAltered]:
    """The table, if its folders name a number that it may give out again, or lack an index."""
    update: dict[str, object] = {}
    if numbers.column >= info.next_column_id:
        update["next_column_id"] = numbers.column + 1
    if numbers.index >= info.next_index_id:
        update["next_index_id"] = numbers.index + 1
    if dropped:
        update["indexes"] = tuple(index for index in info.indexes if index not in dropped)
    if dropped or numbers.schema_version > info.schema_version:
        version = max(numbers.schema_version, info.schema_version) + 1
        update |= {"schema_version": version, "schema_floor": version}
    if update:
        yield TableAltered(info=info.model_copy(update={**update, "version": info.version + 1}))
