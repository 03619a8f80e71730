"""A change as an answer: 202 with the procedure, or its end as a client that waited wants it."""

from collections.abc import Mapping

from fastapi import Response

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.catalogs import CatalogInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.records import ProcedureHistory, ProcedureRecord
from metasrv.api.http.answers import APPLIED_HEADER, VERSION_HEADER, answer
from metasrv.service.bodies.placement_shapes import placement_body, tablespace_body
from metasrv.service.bodies.plan_shapes import plan_body
from metasrv.service.bodies.shapes import catalog_body, schema_body, table_body, table_etag
from metasrv.service.catalog import placements, tables
from metasrv.service.catalog.index_coverage import duplicates_of
from metasrv.service.cluster.failovers import FailoverPlan
from metasrv.service.requests.ddl_request import (
    AlreadyAbsent,
    AlreadySatisfied,
    DdlRequest,
    FullSchemaName,
)
from metasrv.service.requests.ended import error_of, planned_body, procedure_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.standing import stood_at
from metasrv.service.requests.submit_ddl import AcceptedChange, PlannedChange, execute
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from metasrv_base.wire.api.placing.placements import PlacementBody, TablespaceBody
from metasrv_base.wire.api.plans import PlanBody, PlansBody
from metasrv_base.wire.api.procedures import FailoverBody
from metasrv_base.wire.api.tables import (
    CatalogBody,
    IndexBody,
    RestoredTable,
    SchemaBody,
    TableBody,
)
from metasrv_base.wire.model import WireModel
from procedures.kinds.registry import KINDS
from procedures.steps.requirements import is_not_applied

VERSION_FIELD = "catalog_version"  # of a report that tells the version which was made
RETRY_AFTER_S = 1  # an ordinary DDL is over by then

Headers = dict[str, str]
_OF_BODY = frozenset({"content-length", "content-type"})


async def changed(
    state: ServerState,
    context: RequestContext,
    done: AcceptedChange | PlannedChange | AlreadySatisfied | AlreadyAbsent,
) -> Response:
    """Raises what the procedure ended with, if it did not succeed and the client waited."""
    if isinstance(done, PlannedChange):
        return answer(planned_body(done))
    if isinstance(done, AlreadyAbsent):
        return _not_applied(state.follower.catalog.version, {})
    if isinstance(done, AlreadySatisfied):
        return await _stands(state, done)
    headers = _headers(context, [done])
    if not isinstance(done.latest, ProcedureHistory):
        return _accepted(state, done, headers)
    if context.wait_ms is None and stood_at(done.latest) is None:
        return _accepted(state, done, headers)
    error = error_of(done.procedure, done.latest)
    if error is not None:
        raise error
    return await _ended(state, done.latest, headers)


async def executed(state: ServerState, context: RequestContext, request: DdlRequest) -> Response:
    """Executes the change that is asked for, and answers as `changed`."""
    return await changed(state, context, await execute(state, request))


async def restored(
    state: ServerState,
    context: RequestContext,
    done: AcceptedChange | PlannedChange | AlreadySatisfied | AlreadyAbsent,
    not_restored: tuple[str, ...],
) -> Response:
    """The answer of an alter, and what it does not bring back."""
    response = await changed(state, context, done)
    if response.status_code != 200:
        return response
    body: PlanBody | RestoredTable
    if isinstance(done, PlannedChange):
        plan = PlanBody.model_validate_json(bytes(response.body))
        body = plan.model_copy(update={"not_restored": not_restored})
    else:
        table = TableBody.model_validate_json(bytes(response.body))
        body = RestoredTable(**dict(table), not_restored=not_restored)
    kept = {name: value for name, value in response.headers.items() if name not in _OF_BODY}
    return answer(body, 200, kept)


def failed_over(
    state: ServerState, context: RequestContext, done: tuple[AcceptedChange, ...] | FailoverPlan
) -> Response:
    """One procedure: that one. Several: all of them, 200 once every one is over."""
    if isinstance(done, FailoverPlan):
        plans = [plan_body(plan, done.catalog_version) for plan in done.plans]
        body = plans[0] if len(plans) == 1 else PlansBody(plans=tuple(plans))
        return answer(body)
    headers = _headers(context, done)
    waited = context.wait_ms is not None
    over = waited and all(isinstance(change.latest, ProcedureHistory) for change in done)
    if len(done) > 1:
        listed = FailoverBody(procedures=tuple(procedure_body(state, change) for change in done))
        return answer(listed, 200 if over else 202, headers)
    (only,) = done
    if not over or not isinstance(only.latest, ProcedureHistory):
        return _accepted(state, only, headers)
    error = error_of(only.procedure, only.latest)
    if error is not None:
        raise error
    return answer(procedure_body(state, only), 200, headers | _version(only.latest))


def preference_applied(wait_ms: int | None) -> Headers:
    return {} if wait_ms is None else {"Preference-Applied": f"wait={wait_ms // 1000}"}


def location(procedure: str) -> str:
    return f"/v1/procedures/{procedure}"


def _headers(
    context: RequestContext, done: list[AcceptedChange] | tuple[AcceptedChange, ...]
) -> Headers:
    headers = preference_applied(context.wait_ms)
    if done[0].replayed:
        headers["Idempotency-Replayed"] = "true"
    return headers


def _accepted(state: ServerState, done: AcceptedChange, headers: Mapping[str, str]) -> Response:
    body = procedure_body(state, done)
    more = {"Location": location(done.procedure)}
    if not body.done:
        more["Retry-After"] = str(RETRY_AFTER_S)
    return answer(body, 202, {**headers, **more})


async def _ended(state: ServerState, history: ProcedureHistory, headers: Headers) -> Response:
    """The report of its kind; the index that it built; else its resource, as it was left."""
    kind, record = KINDS[history.last.kind], history.last
    if is_not_applied(history.result):
        return _not_applied(stood_at(history) or state.follower.catalog.version, headers)
    headers, status = headers | _version(history), kind.success
    if status == 204:
        return Response(status_code=204, headers=headers)
    version = history.catalog_version or stood_at(history)
    if history.catalog_version is None and (status == 201 or version is not None):
        status = 200  # `if_not_exists`, and somebody else had made it when its turn came
        headers[VERSION_HEADER] = str(tables.left_by(state, version).version)
    if kind.report is not None:
        return answer(_report(kind.report, history), status, headers)
    body: TableBody | SchemaBody | CatalogBody | IndexBody | PlacementBody | TablespaceBody
    if record.resource.type in ("placement", "tablespace"):
        body, path = _placing_made(state, history, version)
        headers |= _etag_of(body)
    elif record.resource.type == "catalog":
        body = tables.made_catalog(state, record.resource.name, version)
        path = f"/v1/catalogs/{body.name}"
    elif record.resource.type == "schema":
        name = FullSchemaName(*record.resource.name.split("."))
        body = tables.made_schema(state, name, version)
        path = f"/v1/catalogs/{name.catalog}/schemas/{name.schema}"
    else:
        body = await tables.made_table(state, _table_id(history, record), version)
        path = f"/v1/tables/{body.id}"
        if kind.index is None:
            headers["ETag"] = table_etag(body.id, body.version)
        else:
            body, path = _index_made(body, kind.index.name(record.state), history)
    if status == 201:
        headers["Location"] = path
    return answer(body, status, headers)


def _report(model: type[WireModel], history: ProcedureHistory) -> WireModel:
    report = dict(history.result or {})
    if VERSION_FIELD in model.model_fields:
        report[VERSION_FIELD] = history.catalog_version
    return model.model_validate(report)


def _placing_made(
    state: ServerState, history: ProcedureHistory, version: int | None
) -> tuple[PlacementBody | TablespaceBody, str]:
    """The placement or tablespace, and its path. Its id is in the result: one that stood already
    has another id than was to be made."""
    resource, result = history.last.resource, history.result or {}
    number = int(result.get(f"{resource.type}_id", resource.id))
    if resource.type == "placement":
        placement = placements.made_placement(state, number, version)
        return placement, f"/v1/placements/{placement.name}"
    catalog = resource.name.partition(".")[0]
    space = placements.made_tablespace(state, catalog, number, version)
    return space, f"/v1/catalogs/{catalog}/tablespaces/{space.name}"


def _etag_of(body: PlacementBody | TablespaceBody) -> Headers:
    return {"ETag": body.etag} if isinstance(body, PlacementBody) else {}


def _index_made(table: TableBody, name: str, history: ProcedureHistory) -> tuple[IndexBody, str]:
    """The index, and its path. Raises NotFound if it has been dropped since."""
    made = _index_of(table, name).model_copy(update={"duplicates": duplicates_of(history)})
    within = f"/v1/catalogs/{table.catalog}/schemas/{table.schema_name}/tables/{table.name}"
    return made, f"{within}/indexes/{made.name}"


def _index_of(table: TableBody, name: str) -> IndexBody:
    made = next((index for index in table.indexes if index.name == name), None)
    if made is None:
        raise NotFound(what="index", name=name)
    return made


def _table_id(history: ProcedureHistory, record: ProcedureRecord) -> int:
    table_id = (history.result or {}).get("table_id", record.resource.id)
    return int(table_id)


def _version(history: ProcedureHistory) -> Headers:
    version = history.catalog_version
    return {} if version is None else {VERSION_HEADER: str(version)}


async def _stands(state: ServerState, done: AlreadySatisfied) -> Response:
    version = state.follower.catalog.version
    headers = {VERSION_HEADER: str(version)}
    if isinstance(done.existing, CatalogTable):
        catalog = state.follower.catalog
        addresses = await state.addresses.known()
        body = table_body(done.existing, version, addresses, catalog.placing)
        if done.index is not None:
            return answer(_index_of(body, done.index), 200, headers)
        return answer(body, 200, {**headers, "ETag": table_etag(body.id, body.version)})
    if isinstance(done.existing, CatalogInfo):
        return answer(catalog_body(done.existing, state.follower.catalog), 200, headers)
    if isinstance(done.existing, PlacementInfo):
        placement = placement_body(done.existing, version)
        return answer(placement, 200, {**headers, "ETag": placement.etag})
    if isinstance(done.existing, TablespaceInfo):
        return answer(tablespace_body(done.existing, version), 200, headers)
    return answer(schema_body(done.existing, version), 200, headers)


def _not_applied(version: int, headers: Headers) -> Response:
    """Returns the answer of a change with `if_exists` whose object did not exist."""
    applied = {APPLIED_HEADER: "false", VERSION_HEADER: str(version)}
    return Response(status_code=204, headers={**headers, **applied})
