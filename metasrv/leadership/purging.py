"""Dropped tables whose retention is over: which of them are purged now, and by whom.

A table waits as long as a node of its regions is away: its files could not be deleted there, and
its keys are the only claim on them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from heapq import nsmallest

import structlog

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import ClientRequirements as Client
from metasrv.leadership.term import Term
from metasrv_base.concurrency.turns import Turns, by_turns, slices
from metasrv_base.errors import MetaError
from procedures.engine.submit import SubmitRequest
from procedures.kinds.tables.purge_table import PURGE_TABLE, PurgeTable

UNDER_WAY_MAX = 32  # purges at once: what clients want goes first

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DropRetention:
    """The time for which dropped tables are kept."""

    now_ms: int
    """Wall clock."""
    default_ms: int
    """The retention of tenants that have none of their own."""

    def before_ms(self, catalog: Catalog, table: CatalogTable) -> int:
        """A table dropped at that time or earlier is due."""
        info = catalog.catalogs.get(table.info.catalog)
        own_ms = None if info is None else info.own_settings.drop_retention_ms
        return self.now_ms - (self.default_ms if own_ms is None else own_ms)


def due(
    catalog: Catalog, retention: DropRetention, away: Collection[str], limit: int
) -> Turns[tuple[CatalogTable, ...]]:
    """At most *limit* tables whose retention is over, the oldest drop first. *away*: nodes that are
    registered, and cannot be told anything now."""
    first: list[tuple[int, int, CatalogTable]] = []
    for tables in slices(catalog.all_dropped()):
        over = (
            (table.dropped_at_ms, table.info.table_id, table)
            for table in tables
            if table.dropped_at_ms is not None
            and table.dropped_at_ms <= retention.before_ms(catalog, table)
            and not any(node in away for node in table.route.numbers_by_node())
        )
        first = nsmallest(limit, [*first, *over], key=lambda candidate: candidate[:2])
        yield
    return tuple(table for _, _, table in first)


async def purge_dropped(term: Term, now_ms: int) -> int:
    """Submits a purge of each table that is due at *now_ms*, wall clock; how many it submitted.

    Nothing before the leader knows which nodes are there, and what its predecessor had begun.
    """
    book = term.nodes
    if not term.ready.is_set() or book.clock.mono_ms() < book.leases.quiet_until_ms:
        return 0
    records = [entry.held.record for _, entry in term.manager.living()]
    under_way = {record.resource.id for record in records if record.kind == PURGE_TABLE.name}
    away = {node.node_id for node in term.ports.placement.nodes() if not node.takes_orders}
    retention = DropRetention(now_ms, term.settings.values.drop_retention_ms)
    submitted = 0
    for table in await by_turns(due(book.follower.catalog, retention, away, UNDER_WAY_MAX)):
        if str(table.info.table_id) in under_way:
            continue
        if len(under_way) + submitted >= UNDER_WAY_MAX or not await _submit(term, table):
            break
        submitted += 1
    return submitted


async def _submit(term: Term, table: CatalogTable) -> bool:
    info, state = table.info, PurgeTable.of(table)
    statement = {"automatic": "purge", "table": info.full_name}
    client = Client(submitted_by="metasrv", request_id="", statement=statement)
    request = SubmitRequest(term.ports.ids.procedure_id(), client, fingerprint="")
    try:
        await term.manager.submit(PURGE_TABLE, state, request)
    except MetaError as error:
        log.info("purge_postponed", table_id=info.table_id, error=error.code)
        return False
    log.info("purge_started", table_id=info.table_id, procedure=request.procedure)
    return True
