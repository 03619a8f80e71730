"""The resources of `Client`, each the asynchronous one called through its loop. No logic here."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from metasrv.sdk.control.operations import (
        Cluster,
        Failovers,
        NodeBook,
        ProcedureFilters,
        Procedures,
        Regions,
        Settings,
    )
    from metasrv.sdk.control.procedure import OnProgress
    from metasrv.sdk.control.service import ChangeOptions
    from metasrv.sdk.control.tables import Catalogs, Indexes, Schemas, Spec, Tables
    from metasrv.sdk.portal import Portal
    from metasrv_base.wire.api.changes import AlterOperation
    from metasrv_base.wire.api.cluster import (
        ClusterBody,
        MaintenanceBody,
        NodeBody,
        NodeDetailBody,
        PauseBody,
        RegionBody,
    )
    from metasrv_base.wire.api.control import LockBody, PoisonBody, ThrottleRequest
    from metasrv_base.wire.api.imports import ImportBody
    from metasrv_base.wire.api.procedures import FailoverRequest, ProcedureBody
    from metasrv_base.wire.api.tables import (
        CatalogBody,
        IndexBody,
        IndexSpec,
        RouteBody,
        SchemaBody,
        TableBody,
        TableSummary,
    )
    from metasrv_base.wire.frontend.holders import SchemaLeaseBody
    from metasrv_base.wire.node.checks import TableCheckBody
    from metasrv_base.wire.node.nodes import SettingBody


class SyncTables:
    def __init__(self, portal: Portal, tables: Tables) -> None:
        self._call = portal.call
        self._tables = tables

    def create(
        self, spec: Spec, schema: str = "main.public", **options: Unpack[ChangeOptions]
    ) -> TableBody:
        return self._call(self._tables.create(spec, schema, **options))

    def get(self, name: str) -> TableBody:
        return self._call(self._tables.get(name))

    def get_by_id(self, table_id: int) -> TableBody:
        return self._call(self._tables.get_by_id(table_id))

    def list(
        self, schema: str = "main.public", prefix: str = "", include_dropped: bool = False
    ) -> builtins.list[TableSummary]:
        return self._call(self._tables.list(schema, prefix, include_dropped))

    def rename(
        self,
        name: str,
        new_name: str,
        new_schema: str | None = None,
        *,
        exchange: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TableBody:
        return self._call(
            self._tables.rename(name, new_name, new_schema, exchange=exchange, **options)
        )

    def alter(
        self,
        name: str,
        operations: Sequence[AlterOperation | Mapping[str, Any]],
        grace_s: int = 0,
        **options: Unpack[ChangeOptions],
    ) -> TableBody:
        return self._call(self._tables.alter(name, operations, grace_s, **options))

    def drop(self, name: str, **options: Unpack[ChangeOptions]) -> None:
        self._call(self._tables.drop(name, **options))

    def undrop(
        self,
        name: str,
        table_id: int | None = None,
        new_name: str | None = None,
        **options: Unpack[ChangeOptions],
    ) -> TableBody:
        return self._call(self._tables.undrop(name, table_id, new_name, **options))

    def purge(
        self,
        reason: str,
        name: str | None = None,
        table_id: int | None = None,
        **options: Unpack[ChangeOptions],
    ) -> None:
        self._call(self._tables.purge(reason, name, table_id, **options))

    def undrop_column(
        self, table: str, name: str, **options: Unpack[ChangeOptions]
    ) -> ProcedureBody:
        return self._call(self._tables.undrop_column(table, name, **options))

    def truncate(self, name: str, **options: Unpack[ChangeOptions]) -> TableBody:
        return self._call(self._tables.truncate(name, **options))

    def check(self, name: str, **options: Unpack[ChangeOptions]) -> TableCheckBody:
        return self._call(self._tables.check(name, **options))

    def import_files(
        self, name: str, paths: Sequence[str], **options: Unpack[ChangeOptions]
    ) -> ImportBody:
        return self._call(self._tables.import_files(name, paths, **options))

    def route(self, name: str) -> RouteBody:
        return self._call(self._tables.route(name))


class SyncIndexes:
    def __init__(self, portal: Portal, indexes: Indexes) -> None:
        self._call = portal.call
        self._indexes = indexes

    def create(
        self,
        table: str,
        name: str,
        columns: Sequence[str],
        unique: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> IndexBody:
        return self._call(self._indexes.create(table, name, columns, unique, **options))

    def make(self, table: str, spec: IndexSpec, **options: Unpack[ChangeOptions]) -> IndexBody:
        return self._call(self._indexes.make(table, spec, **options))

    def validate(self, table: str, name: str, **options: Unpack[ChangeOptions]) -> IndexBody:
        return self._call(self._indexes.validate(table, name, **options))

    def get(self, table: str, name: str) -> IndexBody:
        return self._call(self._indexes.get(table, name))

    def list(self, table: str) -> builtins.list[IndexBody]:
        return self._call(self._indexes.list(table))

    def drop(
        self, table: str, name: str, grace_s: int = 0, **options: Unpack[ChangeOptions]
    ) -> None:
        self._call(self._indexes.drop(table, name, grace_s, **options))

    def undrop(self, table: str, name: str, **options: Unpack[ChangeOptions]) -> ProcedureBody:
        return self._call(self._indexes.undrop(table, name, **options))


class SyncSchemas:
    def __init__(self, portal: Portal, schemas: Schemas) -> None:
        self._call = portal.call
        self._schemas = schemas

    def create(
        self, name: str, if_not_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> SchemaBody:
        return self._call(self._schemas.create(name, if_not_exists, **options))

    def get(self, name: str) -> SchemaBody:
        return self._call(self._schemas.get(name))

    def list(self, catalog: str = "main") -> builtins.list[SchemaBody]:
        return self._call(self._schemas.list(catalog))

    def drop(self, name: str, cascade: bool = False, **options: Unpack[ChangeOptions]) -> None:
        self._call(self._schemas.drop(name, cascade, **options))


class SyncCatalogs:
    def __init__(self, portal: Portal, catalogs: Catalogs) -> None:
        self._call = portal.call
        self._catalogs = catalogs

    def create(
        self, name: str, if_not_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> CatalogBody:
        return self._call(self._catalogs.create(name, if_not_exists, **options))

    def get(self, name: str) -> CatalogBody:
        return self._call(self._catalogs.get(name))

    def list(self) -> builtins.list[CatalogBody]:
        return self._call(self._catalogs.list())

    def drop(self, name: str, cascade: bool = False, **options: Unpack[ChangeOptions]) -> None:
        self._call(self._catalogs.drop(name, cascade, **options))


class SyncProcedures:
    def __init__(self, portal: Portal, procedures: Procedures) -> None:
        self._call = portal.call
        self._procedures = procedures

    def get(self, procedure_id: str) -> ProcedureBody:
        return self._call(self._procedures.get(procedure_id))

    def list(
        self, limit: int = 100, **only: Unpack[ProcedureFilters]
    ) -> builtins.list[ProcedureBody]:
        return self._call(self._procedures.list(limit, **only))

    def wait(
        self, procedure_id: str, wait_s: float = 60, on_progress: OnProgress | None = None
    ) -> ProcedureBody:
        return self._call(self._procedures.wait(procedure_id, wait_s, on_progress))

    def cancel(
        self, procedure_id: str, by: str | None = None, reason: str | None = None
    ) -> ProcedureBody:
        return self._call(self._procedures.cancel(procedure_id, by, reason))

    def control(
        self,
        procedure_id: str,
        action: str,
        by: str | None = None,
        reason: str | None = None,
        percent: int | ThrottleRequest | None = None,
    ) -> ProcedureBody:
        return self._call(self._procedures.control(procedure_id, action, by, reason, percent))

    def locks(self) -> builtins.list[LockBody]:
        return self._call(self._procedures.locks())

    def poisons(self) -> builtins.list[PoisonBody]:
        return self._call(self._procedures.poisons())

    def clear_poison(self, resource: str, reason: str, by: str | None = None) -> ProcedureBody:
        return self._call(self._procedures.clear_poison(resource, reason, by))


class SyncFailovers:
    def __init__(self, portal: Portal, failovers: Failovers) -> None:
        self._call = portal.call
        self._failovers = failovers

    def start(
        self, request: FailoverRequest, **options: Unpack[ChangeOptions]
    ) -> builtins.list[ProcedureBody]:
        return self._call(self._failovers.start(request, **options))

    def list(self, limit: int = 100) -> builtins.list[ProcedureBody]:
        return self._call(self._failovers.list(limit))


class SyncNodes:
    def __init__(self, portal: Portal, nodes: NodeBook) -> None:
        self._call = portal.call
        self._nodes = nodes

    def get(self, node_id: str) -> NodeDetailBody:
        return self._call(self._nodes.get(node_id))

    def list(self) -> builtins.list[NodeBody]:
        return self._call(self._nodes.list())

    def schema_leases(
        self, table_id: int | None = None, older_than: int | None = None
    ) -> Sequence[SchemaLeaseBody]:
        return self._call(self._nodes.schema_leases(table_id, older_than))

    def cordon(self, node_id: str, reason: str) -> NodeBody:
        return self._call(self._nodes.cordon(node_id, reason))

    def uncordon(self, node_id: str) -> NodeBody:
        return self._call(self._nodes.uncordon(node_id))

    def release(self, node_id: str, reason: str) -> NodeBody:
        return self._call(self._nodes.release(node_id, reason))

    def rebind(self, node_id: str, principal: str) -> NodeBody:
        return self._call(self._nodes.rebind(node_id, principal))

    def drain(
        self,
        node_id: str,
        reason: str,
        targets: Sequence[str] = (),
        **options: Unpack[ChangeOptions],
    ) -> ProcedureBody:
        return self._call(self._nodes.drain(node_id, reason, targets, **options))

    def decommission(
        self, node_id: str, reason: str, *, lost: bool = False, dry_run: bool = False
    ) -> NodeBody:
        return self._call(self._nodes.decommission(node_id, reason, lost=lost, dry_run=dry_run))

    def decommission_lost(
        self, node_id: str, reason: str, **options: Unpack[ChangeOptions]
    ) -> NodeBody:
        return self._call(self._nodes.decommission_lost(node_id, reason, **options))


class SyncRegions:
    def __init__(self, portal: Portal, regions: Regions) -> None:
        self._call = portal.call
        self._regions = regions

    def get(self, region_id: str) -> RegionBody:
        return self._call(self._regions.get(region_id))

    def list(self) -> builtins.list[RegionBody]:
        return self._call(self._regions.list())


class SyncCluster:
    def __init__(self, portal: Portal, cluster: Cluster) -> None:
        self._call = portal.call
        self._cluster = cluster

    def get(self) -> ClusterBody:
        return self._call(self._cluster.get())

    def maintenance(self) -> MaintenanceBody:
        return self._call(self._cluster.maintenance())

    def set_maintenance(
        self, enabled: bool, reason: str | None = None, expires_in_s: int | None = None
    ) -> MaintenanceBody:
        return self._call(self._cluster.set_maintenance(enabled, reason, expires_in_s))

    def pause(self) -> PauseBody:
        return self._call(self._cluster.pause())

    def set_pause(self, paused: bool, reason: str | None = None) -> PauseBody:
        return self._call(self._cluster.set_pause(paused, reason))


class SyncSettings:
    def __init__(self, portal: Portal, settings: Settings) -> None:
        self._call = portal.call
        self._settings = settings

    def get(self, name: str) -> SettingBody:
        return self._call(self._settings.get(name))

    def list(self) -> builtins.list[SettingBody]:
        return self._call(self._settings.list())

    def put(self, name: str, value: object, expected_version: int | None = None) -> SettingBody:
        return self._call(self._settings.put(name, value, expected_version))
