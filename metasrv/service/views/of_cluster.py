"""Rows of views of the cluster: what the API says of each object, in columns. Pure."""

from collections.abc import Iterator

from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.shapes import region_body
from metasrv.service.views.of_tables import of_table
from metasrv.service.views.view import Row, ViewFacts, json_text, yes_no
from metasrv_base.schema.instants import parse_instant
from metasrv_base.wire.api.cluster import NodeBody
from metasrv_base.wire.api.control import LockBody
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.versions import CatalogChange
from metasrv_base.wire.frontend.holders import SchemaLeaseBody
from metasrv_base.wire.node.nodes import SettingBody


def region_rows(facts: ViewFacts, table: CatalogTable) -> Iterator[Row]:
    for region in table.route.region_routes:
        body = region_body(region, facts.addresses)
        stat = facts.reports.get(region.leader, {}).get(region.region_id)
        yield (
            *of_table(table.info),
            body.region_id,
            body.number,
            body.leader,
            body.address,
            ", ".join(body.followers),
            ", ".join(copy.node for copy in body.copies if copy.role == "in-sync"),
            body.epoch,
            body.state,
            region.root,
            ", ".join(body.borrows),
            *((None,) * 4 if stat is None else (stat.rows, stat.bytes, stat.wal_bytes, stat.files)),
        )


def node_rows(facts: ViewFacts, node: NodeBody) -> Iterator[Row]:
    resources = node.resources
    yield (
        node.id,
        node.role,
        node.state,
        node.address,
        node.zone,
        json_text(node.labels),
        node.root,
        node.version,
        node.incarnation,
        _ms(node.registered_at),
        node.phi,
        node.heard_ms_ago,
        node.lease_left_ms,
        None if node.cordon is None else node.cordon.reason,
        None if node.failover_held is None else node.failover_held.reason,
        _ms(node.dead_since),
        node.principal,
        node.leads,
        *(
            (None,) * 5
            if resources is None
            else (
                resources.cpu_cores,
                resources.memory_bytes,
                resources.memory_free_bytes,
                resources.disk_bytes,
                resources.disk_free_bytes,
            )
        ),
    )


def frontend_rows(facts: ViewFacts, holder: SchemaLeaseBody) -> Iterator[Row]:
    yield (
        holder.holder_id,
        holder.address,
        holder.version,
        holder.incarnation,
        _ms(holder.registered_at),
        holder.have,
        holder.acknowledged_ms_ago,
        holder.lease_left_ms,
        len(holder.pinned),
        max((pin.age_ms for pin in holder.pinned), default=None),
        holder.statement_p99_ms,
    )


def procedure_rows(facts: ViewFacts, procedure: ProcedureBody) -> Iterator[Row]:
    progress, error = procedure.progress, procedure.error
    waits = (f"{wait.kind} {wait.key or wait.holder}" for wait in procedure.waiting_for)
    yield (
        procedure.id,
        procedure.kind,
        procedure.state,
        procedure.resource.type,
        procedure.resource.id,
        procedure.resource.name,
        procedure.step,
        procedure.done,
        *(
            (None,) * 4
            if progress is None
            else (progress.phase, progress.done, progress.total, progress.unit)
        ),
        ", ".join(waits) or None,
        procedure.stalled,
        procedure.attempt,
        procedure.resumed,
        procedure.parent_id,
        procedure.submitted_by,
        _ms(procedure.submitted_at),
        _ms(procedure.started_at),
        _ms(procedure.finished_at),
        None if error is None else error.code,
        None if error is None else error.detail,
        procedure.catalog_version,
    )


def lock_rows(facts: ViewFacts, lock: LockBody) -> Iterator[Row]:
    for claim in lock.holders:
        yield lock.key, claim.procedure_id, claim.kind, claim.mode, yes_no(True), None
    for position, claim in enumerate(lock.queue, 1):
        yield lock.key, claim.procedure_id, claim.kind, claim.mode, yes_no(False), position


def version_rows(facts: ViewFacts, change: CatalogChange) -> Iterator[Row]:
    yield (
        change.version,
        change.first_version,
        change.versions,
        _ms(change.committed_at),
        change.by,
        change.request_id,
        change.procedure_id,
        change.operations_total,
        change.text,
    )


def setting_rows(facts: ViewFacts, setting: SettingBody) -> Iterator[Row]:
    yield (
        setting.name,
        json_text(setting.value),
        json_text(setting.default),
        setting.unit,
        setting.meaning,
        setting.version,
        setting.changed_by,
        _ms(setting.changed_at),
    )


def _ms(text: str | None) -> int | None:
    return None if text is None else parse_instant(text, "ms")
