"""restore_table: the alter that brings the definition of an earlier version back. Pure but for the
look at that version.

The operations are those of the difference from now to then, checked one by one: what the alter
would refuse is left out, and reported with the reason. Nothing brings back values that were
dropped.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from keys.catalog.parts.placing import BUILT_IN
from keys.model.tables import TableInfo
from metasrv.service.catalog.change_text import altered, text_of
from metasrv.service.catalog.reading import Freshness, view
from metasrv.service.catalog.table_diff import DifferenceOfTables, difference
from metasrv.service.ddl.ddl_tables import locks_of_table, stored_operation, table_asked_for
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
    table_named,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused
from metasrv_base.wire.api.changes import AddColumn, AlterOperation, RestoreRequest
from metasrv_base.wire.api.versions import CreatedIndex
from procedures.kinds.alter.alter_operations import DropIndex, Operation, drafted
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable, must_fit


@dataclass(frozen=True, slots=True)
class WayBack:
    """The operations from a table to an earlier version of it."""

    operations: tuple[Operation, ...]
    not_restored: tuple[str, ...]
    """Each part of the earlier version that they do not bring back, and why."""


@dataclass(frozen=True, slots=True)
class TableToRestore:
    request: DdlRequest
    not_restored: tuple[str, ...]
    """The parts that are not restored, as of the moment of the request."""


async def restore_table(
    state: ServerState, context: RequestContext, name: FullTableName, request: RestoreRequest
) -> TableToRestore:
    """Raises NotFound if the table did not stand at that version; as `view` for the version."""
    then = (await view(state, Freshness(as_of=f"version:{request.version}"))).catalog
    now = table_named(state.follower.catalog, name)
    earlier = then.tables.get(now.info.table_id)
    if earlier is None or earlier.dropped_at_ms is not None:
        raise NotFound("table-not-found", name=f"{name.full} at version {request.version}")
    plan = partial(plan_restore, context, name, earlier.info, request.grace_s * 1_000)
    way = way_back(now.info, earlier.info, state.clock.wall_ms())
    return TableToRestore(
        DdlRequest(context, partial(locks_of_table, name), plan), way.not_restored
    )


def plan_restore(
    context: RequestContext,
    name: FullTableName,
    then: TableInfo,
    grace_ms: int,
    facts: RequestFacts,
) -> ProcedureToSubmit | AlreadySatisfied:
    table = table_asked_for(context, name, facts)
    if table.info.table_id != then.table_id:
        raise Conflict(expected=then.table_id, found=table.info.table_id)
    way = way_back(table.info, then, facts.now_ms)
    if not way.operations:
        return AlreadySatisfied(ALTER_TABLE, table)
    state = AlterTable(
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        table_id=table.info.table_id,
        operations=way.operations,
        grace_ms=grace_ms,
    )
    draft = drafted(table.info, way.operations)
    must_fit(draft, state, table.route, context.client())
    return ProcedureToSubmit(ALTER_TABLE, state, table.info.table_id)


def way_back(now: TableInfo, then: TableInfo, now_ms: int) -> WayBack:
    """The operations that an alter of *now* takes and that lead to *then*, as far as it goes."""
    different = difference(now, then)
    operations = _index_drops(now, different)
    not_restored = list(_indexes_that_went(then, different))
    if now.full_name != then.full_name:
        not_restored.append(f"the name {then.full_name}: a rename brings it back")
    for operation in different.alter:
        if operation.op == "set_copies":
            not_restored.append(f"{altered(operation)}: an alter does that")
            continue
        reason = None
        for attempt in _attempts(operation):
            stored = stored_operation(attempt, now_ms, "", BUILT_IN)
            try:
                drafted(now, (*operations, stored))
            except (Refused, Conflict) as error:
                reason = reason or _reason(error)
                continue
            operations = (*operations, stored)
            not_restored += _lost(operation, attempt)
            break
        else:
            not_restored.append(f"{altered(operation)}: {reason}")
    return WayBack(operations, tuple(not_restored))


def _index_drops(now: TableInfo, different: DifferenceOfTables) -> tuple[Operation, ...]:
    """Drops of indexes that came since. One over a column that goes leaves with it."""
    going = {each.name for each in different.alter if each.op == "drop_column"}
    ids = {column.id for column in now.columns if column.name in going}
    drops = [each for each in different.indexes if each.op == "drop_index"]
    over = {index.name for index in now.indexes if ids.intersection(index.columns)}
    return tuple(DropIndex(name=each.name) for each in drops if each.name not in over)


def _indexes_that_went(then: TableInfo, different: DifferenceOfTables) -> Iterator[str]:
    for operation in different.indexes:
        if isinstance(operation, CreatedIndex):
            index = operation.index
            body = {"name": index.name, "columns": index.columns, "unique": index.unique}
            words = text_of(then.full_name, operation)
            yield f"{words}: its entries are gone; POST T/indexes makes it: {json.dumps(body)}"


def _attempts(operation: AlterOperation) -> Iterator[AlterOperation]:
    """The operation, then what comes close: a column somewhere else, or one that may be null."""
    if not isinstance(operation, AddColumn):
        yield operation
        return
    column = operation.column
    if not column.nullable and column.default is None:
        column = column.model_copy(update={"nullable": True})
    attempt = operation.model_copy(update={"column": column})
    yield attempt
    yield attempt.model_copy(update={"after": None})


def _lost(operation: AlterOperation, attempt: AlterOperation) -> Iterator[str]:
    """Yields the parts of a column that do not come back when it is added again."""
    if not (isinstance(operation, AddColumn) and isinstance(attempt, AddColumn)):
        return
    name, default = operation.column.name, json.dumps(attempt.column.default)
    yield f"values of column {name}: they went with it; rows that are there have {default}"
    if attempt.after != operation.after:
        yield f"the position of column {name}: it comes behind the last one"
    if attempt.column.nullable and not operation.column.nullable:
        yield f"not null of column {name}: rows that are there have no value"


def _reason(error: MetaError) -> str:
    facts = error.facts
    if error.code == "already-exists":
        return f"{facts.get('name')} stands in its way; restore once more when that is gone"
    return str(facts.get("reason") or error)
