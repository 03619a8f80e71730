"""The progress of filling an index, read from the procedure's record, on any server."""

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import ProcedureHistory, ProcedureKey, ProcedureRecord
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.coverage import IndexCoverage, IndexDuplicates, RegionCoverage
from procedures.elements.reorg import IndexReorg, stage_of
from procedures.kinds.registry import KINDS


async def coverages(state: ServerState, table: CatalogTable) -> dict[int, IndexCoverage]:
    """Returns the progress of the indexes of *table* that are being filled, by id."""
    items, _ = await scan(state.kv, ProcedureKey.under(), deadline_ms=state.facts.store_deadline_ms)
    covered = {}
    for row in readable(ProcedureKey, ProcedureRecord, items, skip_silently):
        reorg = _reorg_of(row.value, table)
        if reorg is not None:
            covered[reorg.index] = coverage_of(row.key.procedure, reorg, table)
    return covered


def _reorg_of(record: ProcedureRecord, table: CatalogTable) -> IndexReorg | None:
    kind = KINDS.get(record.kind)
    if kind is None or kind.index is None or record.resource.id != str(table.info.table_id):
        return None
    return kind.index.reorg(kind.state.model_validate(record.state))


def coverage_of(procedure: str, reorg: IndexReorg, table: CatalogTable) -> IndexCoverage:
    regions = table.route.region_routes
    return IndexCoverage(
        procedure_id=procedure,
        regions=tuple(
            RegionCoverage(region_id=region.region_id, state=stage_of(reorg, region.number).value)
            for region in regions
        ),
        rows=reorg.rows,
        rows_total=reorg.rows_total,
        entries=reorg.entries,
    )


def duplicates_of(history: ProcedureHistory) -> IndexDuplicates | None:
    """The duplicate keys that keep an index write-only; None: there are none."""
    result = history.result or {}
    if not result.get("duplicates"):
        return None
    duplicates = {"total": result["duplicates"], "first": result["offenders"]}
    return IndexDuplicates.model_validate(duplicates)
