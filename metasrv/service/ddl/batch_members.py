"""The commands of a batch as requests of their own: how each is planned, and its result.

To let batches take another command, add its case to `ddl_request_of`, and its kind to
procedures/kinds/batch/members.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from metasrv.service.ddl import (
    ddl_catalogs,
    ddl_create,
    ddl_placements,
    ddl_schemas,
    ddl_tables,
    ddl_tablespaces,
)
from metasrv.service.requests.ddl_request import DdlRequest, FullSchemaName, FullTableName
from metasrv.service.requests.placing_names import FullTablespaceName
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Refused
from metasrv_base.wire.api import batches, changes
from metasrv_base.wire.api.batches import BatchCommandBody
from metasrv_base.wire.problem.problems import FieldError

PlacingCommandBody = (
    batches.CreatesPlacement
    | batches.AltersPlacement
    | batches.RenamesPlacement
    | batches.DropsPlacement
    | batches.CreatesTablespace
    | batches.AltersTablespace
    | batches.RenamesTablespace
    | batches.DropsTablespace
)
NOT_IN_BATCH = "not-in-batch"
TABLE = "/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}"
ROUTES = {
    "create_index": f"POST {TABLE}/indexes",
    "validate_index": f"POST {TABLE}/indexes/{{index}}/validate",
    "drop_index": f"DELETE {TABLE}/indexes/{{index}}",
    "undrop_table": f"POST {TABLE}/undrop",
    "truncate_table": f"POST {TABLE}/truncate",
    "purge_table": "POST /v1/purges",
    "check_table": f"POST {TABLE}/check",
    "import_table": f"POST {TABLE}/import",
}
"""Command that no batch takes -> the request that does it."""


@dataclass(frozen=True, slots=True)
class MemberRequest:
    """One command of a batch, as the request that would do it alone."""

    op: str
    request: DdlRequest


def op_of(command: BatchCommandBody) -> str:
    """The field of the command that says what it does."""
    (field,) = command.model_fields_set
    return field


def ddl_request_of(context: RequestContext, command: BatchCommandBody) -> DdlRequest:
    """Raises Refused with every fault of the command."""
    match command:
        case batches.CreatesCatalog(create_catalog=spec):
            return ddl_catalogs.create_catalog(context, spec)
        case batches.CreatesSchema(create_schema=made):
            return ddl_schemas.create_schema(context, made.catalog, made.schema_spec)
        case batches.CreatesTable(create_table=table):
            schema = FullSchemaName(table.catalog, table.schema_name)
            return ddl_create.create_table(context, schema, table.table)
        case batches.DropsCatalog(drop_catalog=gone):
            context = replace(context, cascade=gone.cascade, if_exists=gone.if_exists)
            return ddl_catalogs.drop_catalog(context, gone.catalog)
        case batches.DropsSchema(drop_schema=schema):
            context = replace(context, cascade=schema.cascade, if_exists=schema.if_exists)
            name = FullSchemaName(schema.catalog, schema.schema_name)
            return ddl_schemas.drop_schema(context, name)
        case batches.DropsTable(drop_table=named):
            context = replace(context, if_exists=named.if_exists)
            return ddl_tables.drop_table(context, _table(named))
        case batches.RenamesTable(rename_table=rename):
            return ddl_tables.rename_table(context, _table(rename), rename)
        case batches.AltersTable(alter_table=alter):
            request = changes.AlterRequest(operations=alter.operations, if_exists=alter.if_exists)
            return ddl_tables.alter_table(context, _table(alter), request)
        case batches.NotInBatch():
            raise Refused(NOT_IN_BATCH)  # `not_in_batch` has refused it
        case _:
            return _placing_request(context, command)


def _placing_request(context: RequestContext, command: PlacingCommandBody) -> DdlRequest:
    match command:
        case batches.CreatesPlacement(create_placement=placement):
            return ddl_placements.create_placement(context, placement)
        case batches.AltersPlacement(alter_placement=patch):
            return ddl_placements.alter_placement(context, patch.placement, patch)
        case batches.RenamesPlacement(rename_placement=rename):
            return ddl_placements.rename_placement(context, rename.placement, rename)
        case batches.DropsPlacement(drop_placement=gone):
            context = replace(context, if_exists=gone.if_exists)
            return ddl_placements.drop_placement(context, gone.placement)
        case batches.CreatesTablespace(create_tablespace=made):
            return ddl_tablespaces.create_tablespace(context, made.catalog, made.tablespace)
        case batches.AltersTablespace(alter_tablespace=alter):
            return ddl_tablespaces.alter_tablespace(context, _tablespace(alter), alter)
        case batches.RenamesTablespace(rename_tablespace=named):
            return ddl_tablespaces.rename_tablespace(context, _tablespace(named), named)
        case batches.DropsTablespace(drop_tablespace=space):
            context = replace(context, if_exists=space.if_exists)
            return ddl_tablespaces.drop_tablespace(context, _tablespace(space))
        case _:
            assert_never(command)


def _tablespace(
    named: batches.TablespaceToAlter | batches.TablespaceToRename | batches.TablespaceToDrop,
) -> FullTablespaceName:
    return FullTablespaceName(named.catalog, named.tablespace)


def _table(
    named: batches.TableToDrop | batches.TableToRename | batches.TableToAlter,
) -> FullTableName:
    return FullTableName(named.catalog, named.schema_name, named.table)


def not_in_batch(number: int, command: BatchCommandBody) -> Iterator[FieldError]:
    """Faults of a command that does not take effect in one version, with the request that does
    it."""
    op = op_of(command)
    here = f"/commands/{number}/{op}"
    if isinstance(command, batches.NotInBatch):
        yield _refused(here, f"a batch takes no {op}: {ROUTES[op]}")
    if isinstance(command, batches.AltersTable):
        table = command.alter_table
        route = TABLE.format(catalog=table.catalog, schema=table.schema_name, table=table.table)
        for position, operation in enumerate(table.operations):
            if not isinstance(operation, changes.SetOptions):
                detail = f"{operation.op} is no change of one version: POST {route}/alter"
                yield _refused(f"{here}/operations/{position}", detail)


def _refused(pointer: str, detail: str) -> FieldError:
    return FieldError(pointer=pointer, code=NOT_IN_BATCH, detail=detail)
