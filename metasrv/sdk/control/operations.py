"""Clients for operators: procedures, nodes, regions, failovers, maintenance and settings."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Unpack, cast
from urllib.parse import urlencode

from metasrv.sdk.control.procedure import OnProgress, ProcedureFilters
from metasrv.sdk.control.service import PAGE, ChangeOptions, ControlService, Params, past
from metasrv.sdk.control.tables import model_of
from metasrv_base.wire.api.adoption import AdoptionBody, AdoptNodeRequest
from metasrv_base.wire.api.cluster import (
    ClusterBody,
    CordonRequest,
    DecommissionRequest,
    DrainRequest,
    DroppedTables,
    MaintenanceBody,
    MaintenanceRequest,
    NodeBody,
    NodeDetailBody,
    NodeList,
    NodePatch,
    OrphanList,
    PauseBody,
    PauseRequest,
    RebindRequest,
    RegionBody,
    RegionList,
    ReleaseRequest,
    SettingList,
    SettingRequest,
)
from metasrv_base.wire.api.control import (
    LockBody,
    LockList,
    PoisonBody,
    PoisonList,
    ThrottleRequest,
)
from metasrv_base.wire.api.procedures import (
    AddCopyRequest,
    FailoverBody,
    FailoverRequest,
    MoveCopyRequest,
    ProcedureBody,
    ProcedureList,
    RemoveCopyRequest,
    SwitchLeaderRequest,
)
from metasrv_base.wire.frontend.holders import SchemaLeaseBody, SchemaLeaseList
from metasrv_base.wire.node.nodes import SettingBody


class Procedures:
    """`client.procedures`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def get(self, procedure_id: str) -> ProcedureBody:
        return await self._service.read(ProcedureBody, f"/v1/procedures/{procedure_id}")

    async def list(self, limit: int = 100, **only: Unpack[ProcedureFilters]) -> list[ProcedureBody]:
        """Newest first, at most `limit`."""
        return await _newest(self._service, "/v1/procedures", cast(Params, only), limit)

    async def wait(
        self, procedure_id: str, wait_s: float = 60, on_progress: OnProgress | None = None
    ) -> ProcedureBody:
        """Waits until it has succeeded. Raises the error that ended it otherwise; Unknown: it still
        runs."""
        return await self._service.follow(procedure_id, wait_s, on_progress)

    async def cancel(
        self, procedure_id: str, by: str | None = None, reason: str | None = None
    ) -> ProcedureBody:
        """Asks for it; it is undone when it says `cancelled`. Conflict past the point of no
        return."""
        return await self.control(procedure_id, "cancel", by, reason)

    async def pause(
        self, procedure_id: str, by: str | None = None, reason: str | None = None
    ) -> ProcedureBody:
        """Pauses a procedure. It keeps its locks, and its deadline moves. Raises Conflict if it is
        in no state that can be paused."""
        return await self.control(procedure_id, "pause", by, reason)

    async def resume(
        self, procedure_id: str, by: str | None = None, reason: str | None = None
    ) -> ProcedureBody:
        """Ends a pause. Conflict: it is not paused."""
        return await self.control(procedure_id, "resume", by, reason)

    async def retry(
        self, procedure_id: str, by: str | None = None, reason: str | None = None
    ) -> ProcedureBody:
        """Tries its step at once; of a poisoned one, its undo."""
        return await self.control(procedure_id, "retry", by, reason)

    async def throttle(
        self,
        procedure_id: str,
        percent: int = 0,
        rows_per_s: int | None = None,
        by: str | None = None,
    ) -> ProcedureBody:
        """Its steps that move data rest for *percent* of the time, 0 to 95, and read *rows_per_s*
        at most; 0 and None: no limit."""
        request = model_of(ThrottleRequest, {"percent": percent, "rows_per_s": rows_per_s})
        return await self.control(procedure_id, "throttle", by, percent=request)

    async def control(
        self,
        procedure_id: str,
        action: str,
        by: str | None = None,
        reason: str | None = None,
        percent: int | ThrottleRequest | None = None,
    ) -> ProcedureBody:
        """`cancel`, `pause`, `resume`, `retry` or `throttle` (with *percent*, or a request that
        says more). Conflict: not in the state it is in; `facts["allowed_actions"]` says what is."""
        query = urlencode({k: v for k, v in (("by", by), ("reason", reason)) if v is not None})
        path = f"/v1/procedures/{procedure_id}/{action}" + (f"?{query}" if query else "")
        body = {"percent": percent} if isinstance(percent, int) else percent
        request = None if body is None else model_of(ThrottleRequest, body)
        return (await self._service.ask("POST", path, request)).body(ProcedureBody)

    async def locks(self) -> builtins.list[LockBody]:
        """The locks: holders and waiters of each."""
        pages = self._service.pages(LockList, "/v1/locks")
        return [lock async for page in pages for lock in page.locks]

    async def poisons(self) -> builtins.list[PoisonBody]:
        """Resources that failed changes have left half undone."""
        return [*(await self._service.read(PoisonList, "/v1/poisons")).poisons]

    async def clear_poison(
        self, resource: str, reason: str, by: str | None = None
    ) -> ProcedureBody:
        """Says that the undo of *resource*, as `table:1024`, has been finished by hand."""
        query = urlencode({"reason": reason, **({"by": by} if by is not None else {})})
        path = f"/v1/poisons/{resource}?{query}"
        return (await self._service.ask("DELETE", path, None)).body(ProcedureBody)


class Failovers:
    """`client.failovers`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def start(
        self, request: FailoverRequest, **options: Unpack[ChangeOptions]
    ) -> list[ProcedureBody]:
        """The procedures that do it, under way; wait for them with `procedures.wait`."""
        done = await self._service.ask("POST", "/v1/failovers", request, **options)
        return list(_failover(done.json()).procedures)

    async def list(self, limit: int = 100) -> list[ProcedureBody]:
        """Newest first, at most `limit`."""
        return await _newest(self._service, "/v1/failovers", {}, limit)


class NodeBook:
    """`client.nodes`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def get(self, node_id: str) -> NodeDetailBody:
        return await self._service.read(NodeDetailBody, f"/v1/nodes/{node_id}")

    async def orphans(self, node_id: str, first: str = "0") -> OrphanList:
        """A page of its folders that no route names or that wait; `next` begins the next page."""
        return await self._service.read(OrphanList, f"/v1/nodes/{node_id}/orphans?first={first}")

    async def list(self) -> list[NodeBody]:
        return list((await self._service.read(NodeList, "/v1/nodes")).nodes)

    async def schema_leases(
        self, table_id: int | None = None, older_than: int | None = None
    ) -> Sequence[SchemaLeaseBody]:
        """Holders that compute statements from the catalog. With both arguments: those that may
        still use the table below that schema version, for which a change of it waits."""
        filters = {"table": table_id, "older_than": older_than}
        query = {name: str(value) for name, value in filters.items() if value is not None}
        return (await self._service.read(SchemaLeaseList, "/v1/schema-leases", query)).holders

    async def cordon(self, node_id: str, reason: str) -> NodeBody:
        """No new region comes to it."""
        return await self._changed(node_id, "cordon", model_of(CordonRequest, {"reason": reason}))

    async def label(self, node_id: str, labels: Mapping[str, str | None]) -> NodeBody:
        """Changes the labels that are named; None removes one. Regions that it leads stay."""
        request = NodePatch(labels=dict(labels))
        return (await self._service.ask("PATCH", f"/v1/nodes/{node_id}", request)).body(NodeBody)

    async def uncordon(self, node_id: str) -> NodeBody:
        return await self._changed(node_id, "uncordon")

    async def adopt(
        self,
        node_id: str,
        address: str | None = None,
        without: Sequence[str] = (),
        after: int = 0,
        dry_run: bool = False,
    ) -> AdoptionBody:
        """Takes over a node of the cluster from whose backup this one was restored. `next` of the
        answer is the `after` with which the same request goes on."""
        fields = {"address": address, "without": tuple(without), "after": after}
        request = model_of(AdoptNodeRequest, fields)
        query = "?dry_run=true" if dry_run else ""
        answer = await self._service.ask("POST", f"/v1/nodes/{node_id}/adopt{query}", request)
        return answer.body(AdoptionBody)

    async def release(self, node_id: str, reason: str) -> NodeBody:
        """Ends the quarantine of what a removed node brought back."""
        return await self._changed(node_id, "release", model_of(ReleaseRequest, {"reason": reason}))

    async def rebind(self, node_id: str, principal: str) -> NodeBody:
        """The token of that name speaks for it from now on."""
        request = model_of(RebindRequest, {"principal": principal})
        return await self._changed(node_id, "rebind", request)

    async def drain(
        self,
        node_id: str,
        reason: str,
        targets: Sequence[str] = (),
        dropped: DroppedTables = "move",
        **options: Unpack[ChangeOptions],
    ) -> ProcedureBody:
        """The procedure by which its regions leave; wait for it with `procedures.wait`."""
        fields = {"reason": reason, "targets": tuple(targets), "dropped": dropped}
        request = model_of(DrainRequest, fields)
        path = f"/v1/nodes/{node_id}/drain"
        return (await self._service.ask("POST", path, request, **options)).body(ProcedureBody)

    async def decommission(
        self, node_id: str, reason: str, *, lost: bool = False, dry_run: bool = False
    ) -> NodeBody:
        """Removes it. *lost*: as `decommission_lost`. *dry_run*: the node as it would be."""
        if lost and not dry_run:
            return await self.decommission_lost(node_id, reason)
        path, params = f"/v1/nodes/{node_id}/decommission", {"dry_run": "true"} if dry_run else {}
        request = model_of(DecommissionRequest, {"reason": reason, "lost": lost})
        return (await self._service.ask("POST", path, request, params)).body(NodeBody)

    async def decommission_lost(
        self, node_id: str, reason: str, **options: Unpack[ChangeOptions]
    ) -> NodeBody:
        """Moves the regions of a dead node whose disk is gone, and removes it."""
        request = model_of(DecommissionRequest, {"reason": reason, "lost": True})
        await self._service.change("POST", f"/v1/nodes/{node_id}/decommission", request, **options)
        return await self.get(node_id)

    async def _changed(self, node_id: str, action: str, request: object = None) -> NodeBody:
        answer = await self._service.ask("POST", f"/v1/nodes/{node_id}/{action}", request)
        return answer.body(NodeBody)


class Regions:
    """`client.regions`. Ids are decimal strings."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def get(self, region_id: str, as_of: str | None = None) -> RegionBody:
        return await self._service.read(RegionBody, f"/v1/regions/{region_id}", past(as_of))

    async def list(
        self, node: str | None = None, table_id: int | None = None, as_of: str | None = None
    ) -> list[RegionBody]:
        """Regions of tables that are not dropped: those that *node* leads, those of one table."""
        filters = {"node": node, "table": table_id, **past(as_of)}
        only = {name: value for name, value in filters.items() if value is not None}
        pages = self._service.pages(RegionList, "/v1/regions", only)
        return [region async for page in pages for region in page.regions]

    async def switch_leader(
        self,
        region_id: str,
        reason: str,
        to_node: str | None = None,
        expected_epoch: int | None = None,
        **options: Unpack[ChangeOptions],
    ) -> ProcedureBody:
        """The procedure by which another copy in sync leads. None: the copy that suits best."""
        fields = {"reason": reason, "to_node": to_node, "expected_epoch": expected_epoch}
        request = model_of(SwitchLeaderRequest, fields)
        path = f"/v1/regions/{region_id}/switch-leader"
        return (await self._service.ask("POST", path, request, **options)).body(ProcedureBody)

    async def add_copy(
        self, region_id: str, reason: str, node: str | None = None, **options: Unpack[ChangeOptions]
    ) -> ProcedureBody:
        """The procedure that adds a learner, which joins by itself. None: a node that suits."""
        request = model_of(AddCopyRequest, {"reason": reason, "node": node})
        path = f"/v1/regions/{region_id}/copies"
        return (await self._service.ask("POST", path, request, **options)).body(ProcedureBody)

    async def move_copy(
        self,
        region_id: str,
        node: str,
        reason: str,
        to_node: str | None = None,
        **options: Unpack[ChangeOptions],
    ) -> ProcedureBody:
        """The procedure that moves the copy on *node*: adds, then removes. None: one that suits."""
        path = f"/v1/regions/{region_id}/copies/{node}/move"
        request = model_of(MoveCopyRequest, {"reason": reason, "to_node": to_node})
        return (await self._service.ask("POST", path, request, **options)).body(ProcedureBody)

    async def remove_copy(
        self,
        region_id: str,
        node: str,
        reason: str,
        force: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> ProcedureBody:
        """The procedure that removes the copy on *node*. *force*: also where it is needed."""
        path = f"/v1/regions/{region_id}/copies/{node}/remove"
        request = model_of(RemoveCopyRequest, {"reason": reason, "force": force})
        return (await self._service.ask("POST", path, request, **options)).body(ProcedureBody)


class Cluster:
    """`client.cluster`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def get(self) -> ClusterBody:
        """The cluster, also while nobody leads."""
        return await self._service.read(ClusterBody, "/v1/cluster")

    async def maintenance(self) -> MaintenanceBody:
        return await self._service.read(MaintenanceBody, "/v1/cluster/maintenance")

    async def set_maintenance(
        self, enabled: bool, reason: str | None = None, expires_in_s: int | None = None
    ) -> MaintenanceBody:
        """Switches maintenance. While on, nothing fails over by itself; requests need `force`."""
        fields = {"enabled": enabled, "reason": reason, "expires_in_s": expires_in_s}
        request = model_of(MaintenanceRequest, fields)
        answer = await self._service.ask("PUT", "/v1/cluster/maintenance", request)
        return answer.body(MaintenanceBody)

    async def pause(self) -> PauseBody:
        """Whether all procedures are paused."""
        return await self._service.read(PauseBody, "/v1/cluster/procedures")

    async def set_pause(self, paused: bool, reason: str | None = None) -> PauseBody:
        """Pauses all procedures, or resumes them. While paused none begins a step."""
        request = model_of(PauseRequest, {"paused": paused, "reason": reason})
        return (await self._service.ask("PUT", "/v1/cluster/procedures", request)).body(PauseBody)


class Settings:
    """`client.settings`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def get(self, name: str) -> SettingBody:
        return await self._service.read(SettingBody, f"/v1/settings/{name}")

    async def list(self) -> list[SettingBody]:
        return list((await self._service.read(SettingList, "/v1/settings")).settings)

    async def put(
        self, name: str, value: object, expected_version: int | None = None
    ) -> SettingBody:
        """Sets a setting. Conflict: its version is not *expected_version*, as read before."""
        request = model_of(SettingRequest, {"value": value, "expected_version": expected_version})
        return (await self._service.ask("PUT", f"/v1/settings/{name}", request)).body(SettingBody)


async def _newest(
    service: ControlService, path: str, filters: Params, limit: int
) -> list[ProcedureBody]:
    procedures: list[ProcedureBody] = []
    pages = service.pages(ProcedureList, path, {**filters, "page_size": min(limit, PAGE)})
    async for page in pages:
        procedures += page.procedures
        if len(procedures) >= limit:
            break
    return procedures[:limit]


def _failover(document: object) -> FailoverBody:
    """One procedure, or several: a node that is already being failed over has one."""
    if isinstance(document, dict) and "procedures" not in document:
        document = {"procedures": [document]}
    return model_of(FailoverBody, document)
