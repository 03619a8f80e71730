"""Plans create_table: every id, node and folder is chosen before it is submitted."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.records import Lock
from keys.model.tables import Column, TableInfo
from metasrv.service.ddl.sizes import must_fit
from metasrv.service.ddl.table_placing import (
    FORMAT,
    TablePlacing,
    partition_of_spec,
    placing_of,
    reasons_text,
    too_few_nodes,
    with_copy_numbers,
)
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    FullSchemaName,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict, Unavailable
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.api.table_rules import rule_of, validate_spec
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.tables.create_table import CREATE_TABLE, CreateTable
from procedures.locking.locks import (
    catalog_key,
    exclusive,
    name_key,
    placing_of_table,
    schema_key,
    shared,
)
from procedures.steps.copies.copy_placing import Homes
from procedures.steps.copies.new_routes import place_regions, table_route
from procedures.steps.existing import alike

PLACEHOLDER_ID = 2**31 - 1  # as long as an id can become in years; replaced before submit


@frozen
class TableToCreate:
    name: FullTableName
    spec: TableSpec


def create_table(context: RequestContext, schema: FullSchemaName, spec: TableSpec) -> DdlRequest:
    """Raises Refused with every fault of the spec."""
    refuse(validate_spec(spec))
    context.require_no_version()
    table = TableToCreate(FullTableName(schema.catalog, schema.schema, spec.name), spec)
    return DdlRequest(context, partial(_wants, table), partial(plan_create_table, context, table))


def _wants(table: TableToCreate, catalog: Catalog) -> tuple[Lock, ...]:
    name, spec = table.name, table.spec
    return (
        shared(catalog_key(name.catalog)),
        shared(schema_key(name.catalog, name.schema)),
        exclusive(name_key(name.catalog, name.schema, name.table)),
        *placing_of_table(name.catalog, spec.placement, spec.tablespace),
    )


def plan_create_table(
    context: RequestContext, table: TableToCreate, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    name, spec = table.name, table.spec
    facts.catalog.schema(name.catalog, name.schema)
    placing = placing_of(spec, name.catalog, facts.catalog)
    info = table_info(table, placing, PLACEHOLDER_ID, facts.now_ms)
    existing = facts.catalog.find(name.catalog, name.schema, name.table)
    if existing is not None:
        alike(info, existing.info, if_not_exists=spec.if_not_exists)
        return AlreadySatisfied(CREATE_TABLE, existing)
    homes = _place(facts, info)
    route = table_route(PLACEHOLDER_ID, homes)
    must_fit(info, route, context)
    draft = CreateTable(
        info=info,
        route=route,
        if_not_exists=spec.if_not_exists,
        placement=placing.placement_name,
        tablespace=placing.tablespace,
    )

    def numbered(table_id: int) -> CreateTable:
        own = info.model_copy(update={"table_id": table_id})
        return draft.model_copy(update={"info": own, "route": table_route(table_id, homes)})

    return ProcedureToSubmit(CREATE_TABLE, draft, sequence="table_id", numbered=numbered)


def table_info(
    table: TableToCreate, placing: TablePlacing, table_id: int, now_ms: int
) -> TableInfo:
    """Columns are numbered from 1 in the order given; every version begins at 1."""
    name, spec = table.name, table.spec
    ids = {column.name: number for number, column in enumerate(spec.columns, start=1)}
    info = TableInfo(
        table_id=table_id,
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        version=1,
        schema_version=1,
        schema_floor=1,
        columns=tuple(
            Column(
                id=ids[column.name],
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                default=column.default,
            )
            for column in spec.columns
        ),
        next_column_id=len(spec.columns) + 1,
        primary_key=tuple(ids[column] for column in spec.primary_key),
        partition=rule_of(partition_of_spec(spec, placing.placement), spec.primary_key, ids),
        options=spec.options,
        replicas=1,
        created_at_ms=now_ms,
        **{**_colocation(spec, ids), **placing.fields()},
    )
    return with_copy_numbers(info, spec, placing.placement)


def _colocation(spec: TableSpec, ids: Mapping[str, int]) -> dict[str, Any]:
    if spec.colocation_columns is None:
        return {}
    return {"format": FORMAT, "colocation": tuple(ids[name] for name in spec.colocation_columns)}


def _place(facts: RequestFacts, info: TableInfo) -> tuple[Homes, ...]:
    """Raises Conflict("node-not-eligible") with every node's reason; Unavailable while a node has
    not said yet how much room it has: a new leader hears them all within a heartbeat."""
    nodes = facts.nodes
    if not nodes:
        raise Conflict("node-not-eligible", reason="none is registered")
    try:
        return place_regions(info, range(info.partition.regions), facts.catalog, nodes)
    except Unavailable as error:
        reasons = error.facts["reasons"]
        assert isinstance(reasons, dict)
        if any(node.alive and node.disk_free_bytes == 0 for node in nodes):
            raise Unavailable("not-ready", what="a node", reasons=reasons) from error
        if info.replicas > 1:
            raise too_few_nodes(info.replicas, nodes, reasons) from error
        reason = reasons_text(reasons)
        raise Conflict("node-not-eligible", reason=reason, reasons=reasons) from error
