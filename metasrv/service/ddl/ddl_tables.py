"""Plans the drop, undrop, truncate, check, rename and alter of a table. Pure."""

from dataclasses import replace
from functools import partial
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.placing.placements import PlacementInfo
from keys.model.records import Lock
from metasrv.service.bodies.shapes import time_of
from metasrv.service.ddl.table_placing import (
    copies_operation,
    grown,
    must_have_nodes,
)
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
    table_named,
)
from metasrv.service.requests.request_context import RequestContext, VersionTag
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.api import changes
from metasrv_base.wire.api.changes import AlterOperation, AlterRequest, RenameRequest, UndropRequest
from metasrv_base.wire.api.table_rules import (
    evaluated,
    validate_alter,
    validate_rename,
    validate_undrop,
)
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.alter import alter_operations as stored
from procedures.kinds.alter import constraint_operations as constraints
from procedures.kinds.alter.alter_operations import Operation, drafted
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable, must_fit
from procedures.kinds.alter.type_operations import AlterTypeOperation
from procedures.kinds.tables.check_table import CHECK_TABLE
from procedures.kinds.tables.drop_table import DROP_TABLE
from procedures.kinds.tables.rename_table import RENAME_TABLE, RenameTable
from procedures.kinds.tables.truncate_table import TRUNCATE_TABLE
from procedures.kinds.tables.undrop_table import UNDROP_TABLE, UndropTable
from procedures.locking.locks import (
    catalog_key,
    distinct,
    exclusive,
    name_key,
    schema_key,
    shared,
    table_key,
)
from procedures.machine import Kind
from procedures.steps.existing import must_be_free


def drop_table(context: RequestContext, name: FullTableName) -> DdlRequest:
    plan = partial(plan_on_table, DROP_TABLE, context, name)
    request = DdlRequest(context, partial(locks_of_table, name), plan, joins=DROP_TABLE.name)
    return unless_absent(request, DROP_TABLE, "table", name.full, partial(has_table, name))


def undrop_table(
    context: RequestContext, name: FullTableName, request: UndropRequest
) -> DdlRequest:
    refuse(validate_undrop(request))
    target = FullTableName(name.catalog, name.schema, request.new_name or name.table)

    def locks(catalog: Catalog) -> tuple[Lock, ...]:
        return distinct(*locks_of_table(name, catalog), *locks_of_table(target, catalog))

    return DdlRequest(
        context, locks, partial(plan_undrop_table, context, name, target, request.table_id)
    )


def truncate_table(context: RequestContext, name: FullTableName) -> DdlRequest:
    plan = partial(plan_on_table, TRUNCATE_TABLE, context, name)
    return DdlRequest(context, partial(locks_of_table, name), plan)


def check_table(context: RequestContext, name: FullTableName) -> DdlRequest:
    plan = partial(plan_on_table, CHECK_TABLE, context, name)
    return DdlRequest(context, partial(locks_of_table, name), plan)


def rename_table(
    context: RequestContext, name: FullTableName, request: RenameRequest
) -> DdlRequest:
    refuse(validate_rename(request))
    target = FullTableName(name.catalog, request.new_schema or name.schema, request.new_name)

    def locks(catalog: Catalog) -> tuple[Lock, ...]:
        return distinct(*locks_of_table(name, catalog), *locks_of_table(target, catalog))

    plan = partial(plan_rename_table, context, name, target, request.exchange)
    context = replace(context, if_exists=request.if_exists)
    return unless_absent(
        DdlRequest(context, locks, plan), RENAME_TABLE, "table", name.full, partial(has_table, name)
    )


def alter_table(context: RequestContext, name: FullTableName, request: AlterRequest) -> DdlRequest:
    refuse(validate_alter(request))
    context = replace(context, if_exists=request.if_exists)
    plan = partial(plan_alter_table, context, name, request)
    return unless_absent(
        DdlRequest(context, partial(locks_of_table, name), plan),
        *(ALTER_TABLE, "table", name.full, partial(has_table, name)),
    )


def has_table(name: FullTableName, catalog: Catalog) -> bool:
    return catalog.find(name.catalog, name.schema, name.table) is not None


def locks_of_table(name: FullTableName, catalog: Catalog) -> tuple[Lock, ...]:
    """Whatever could give this name another meaning, or is at work on a table that bears it."""
    table = catalog.find(name.catalog, name.schema, name.table)
    dropped = catalog.dropped(name.catalog, name.schema, name.table)
    tables = [*([table] if table else []), *dropped]
    return (
        shared(catalog_key(name.catalog)),
        shared(schema_key(name.catalog, name.schema)),
        exclusive(name_key(name.catalog, name.schema, name.table)),
        *(exclusive(table_key(table.info.table_id)) for table in tables),
    )


def plan_on_table(
    kind: Kind[Any],
    context: RequestContext,
    name: FullTableName,
    facts: RequestFacts,
    **more: object,
) -> ProcedureToSubmit:
    """Plans a kind whose state begins as the table's name and id, with *more* fields."""
    table_id = table_asked_for(context, name, facts).info.table_id
    state = kind.state(
        catalog=name.catalog, schema_name=name.schema, name=name.table, table_id=table_id, **more
    )
    return ProcedureToSubmit(kind, state, table_id)


def plan_rename_table(
    context: RequestContext,
    name: FullTableName,
    target: FullTableName,
    exchange: bool,
    facts: RequestFacts,
) -> ProcedureToSubmit:
    table = table_asked_for(context, name, facts)
    if target == name:
        raise Refused("invalid-schema-change", name=name.full, reason="that is its name already")
    facts.catalog.schema(target.catalog, target.schema)
    other = table_named(facts.catalog, target) if exchange else None
    if other is None:
        _must_be_free(target, facts.catalog)
    state = RenameTable(
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        table_id=table.info.table_id,
        new_schema=target.schema,
        new_name=target.table,
        other_id=None if other is None else other.info.table_id,
    )
    return ProcedureToSubmit(RENAME_TABLE, state, table.info.table_id)


def plan_alter_table(
    context: RequestContext, name: FullTableName, request: AlterRequest, facts: RequestFacts
) -> ProcedureToSubmit:
    table = table_asked_for(context, name, facts)
    placement = facts.catalog.placing.placement_of(table.info)
    operations = tuple(
        stored_operation(operation, facts.now_ms, f"/operations/{number}", placement)
        for number, operation in enumerate(request.operations)
    )
    draft = drafted(table.info, operations)
    state = AlterTable(
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        table_id=table.info.table_id,
        operations=operations,
        grace_ms=request.grace_s * 1_000,
    )
    route = table.route
    if state.sets_copies:
        must_have_nodes(draft.whole, placement, facts.nodes)
        route = grown(route, draft.whole.replicas, facts.nodes)
    must_fit(draft, state, route, context.client())
    return ProcedureToSubmit(ALTER_TABLE, state, table.info.table_id)


def stored_operation(
    operation: AlterOperation, now_ms: int, here: str, placement: PlacementInfo
) -> Operation:
    """`validate_alter` has refused what is not built yet. *placement*: that of the table."""
    match operation:
        case changes.SetCopies():
            return copies_operation(operation, placement)
        case changes.SetOptions():
            return stored.SetOptionsOperation(options=operation.options)
        case changes.RenameColumn():
            return stored.RenameColumnOperation(name=operation.name, new_name=operation.new_name)
        case changes.AddColumn():
            column = operation.column
            type, pointer = parse_type(column.type), f"{here}/column/default"
            return stored.AddColumnOperation(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                default=evaluated(type, column.default, now_ms, pointer),
                after=operation.after,
            )
        case changes.DropColumn():
            return stored.DropColumnOperation(name=operation.name)
        case changes.SetDefault():
            return stored.SetDefaultOperation(name=operation.name, default=operation.default)
        case changes.AlterType():
            return AlterTypeOperation(name=operation.name, type=operation.type)
        case _:
            return _constraint(operation)


def _constraint(operation: AlterOperation) -> Operation:
    match operation:
        case changes.SetNullable(name=column, nullable=True):
            return constraints.DropNotNull(name=column)
        case changes.SetNullable(name=column):
            return constraints.SetNotNull(name=column)
        case changes.ValidateConstraint():
            return constraints.ValidateConstraintOperation(name=operation.name)
        case changes.DropConstraint():
            return constraints.DropConstraintOperation(name=operation.name)
        case changes.AddConstraint(name=name, check=str(check), not_valid=later):
            return constraints.AddCheck(name=name, expression=check, not_valid=later)
        case changes.AddConstraint(name=name, not_null=str(column), not_valid=later):
            return constraints.SetNotNull(name=column, constraint=name, not_valid=later)
    raise AssertionError(operation.op)


def plan_undrop_table(
    context: RequestContext,
    name: FullTableName,
    target: FullTableName,
    table_id: int | None,
    facts: RequestFacts,
) -> ProcedureToSubmit:
    """Plans an undrop. *target* is the name that the table will bear, in the schema it was dropped
    from."""
    schema = facts.catalog.schema(name.catalog, name.schema)
    dropped = dropped_table(name, table_id, facts.catalog)
    context.require_version(name.full, _tag(dropped))
    _must_be_free(target, facts.catalog)
    placing = facts.catalog.placing.uses_of(dropped.info)
    state = UndropTable(
        table_id=dropped.info.table_id,
        catalog=name.catalog,
        schema_name=name.schema,
        old_name=name.table,
        new_name=target.table,
        schema_id=schema.schema_id,
        placement=placing.placement,
        tablespace=placing.tablespace,
    )
    return ProcedureToSubmit(UNDROP_TABLE, state, dropped.info.table_id)


def _must_be_free(name: FullTableName, catalog: Catalog) -> None:
    must_be_free("table", name.full, catalog.find(name.catalog, name.schema, name.table))


def dropped_table(name: FullTableName, table_id: int | None, catalog: Catalog) -> CatalogTable:
    """The one dropped table that is meant."""
    tables = [
        table
        for table in catalog.dropped(name.catalog, name.schema, name.table)
        if table_id in (None, table.info.table_id)
    ]
    if not tables:
        raise NotFound("table-not-found", name=f"{name.full} among the dropped ones")
    if len(tables) > 1:
        raise Conflict(
            "ambiguous-dropped-table",
            name=name.full,
            candidates=[table.info.table_id for table in tables],
            dropped_at={
                str(table.info.table_id): time_of(table.dropped_at_ms or 0) for table in tables
            },
        )
    return tables[0]


def table_asked_for(
    context: RequestContext, name: FullTableName, facts: RequestFacts
) -> CatalogTable:
    """The table that bears the name, at the version the client requires."""
    table = table_named(facts.catalog, name)
    context.require_version(name.full, _tag(table))
    return table


def _tag(table: CatalogTable) -> VersionTag:
    return VersionTag("table", table.info.table_id, table.info.version)
