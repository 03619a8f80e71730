"""Steps of a plan as the requests of the routes that make them. Pure."""

from dataclasses import replace
from typing import Any, cast

from metasrv.service.apply.apply_plan import ApplyPlan
from metasrv.service.ddl import ddl_catalogs, ddl_indexes, ddl_tables
from metasrv.service.ddl.batch import batch
from metasrv.service.declared.steps import PlanStep, digest_of
from metasrv.service.requests.ddl_request import DdlRequest, FullTableName
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.wire.api.batches import AltersTable, BatchRequest
from metasrv_base.wire.api.changes import AlterRequest
from metasrv_base.wire.api.tenants import CatalogPatch
from metasrv_base.wire.language import apply


def step_context(
    context: RequestContext, plan: ApplyPlan, start: int, length: int, states: tuple[Any, ...]
) -> RequestContext:
    """The request of one step, which is what the log keeps of it. Its idempotency key names the
    operations and the versions of their objects, so that two clients that apply the same plan make
    one procedure. No client can send such a key.

    *states*: as they are now. An object that does not exist has no version: there the version of
    the catalog is part of the key.
    """
    shown = plan.shown[start : start + length]
    fixed = None if all(state is not None for state in states) else plan.catalog_version
    key = f"apply\n{digest_of(shown, (states, fixed))}"
    commands = [each.command.model_dump(mode="json", by_alias=True) for each in shown]
    body = {"mode": "apply", "operations": commands}
    size = sum(len(each.command.model_dump_json()) for each in shown)
    return replace(context, key=key, body=body, body_bytes=size, query="")


def request_of(context: RequestContext, step: PlanStep) -> DdlRequest:
    """Raises Refused with every fault of the step."""
    if step.is_batch:
        commands = cast(Any, tuple(each.command for each in step.operations))
        return batch(context, BatchRequest(commands=commands))
    command = step.operations[0].command
    match command:
        case AltersTable(alter_table=table):
            request = AlterRequest(operations=step.alters)
            name = FullTableName(table.catalog, table.schema_name, table.table)
            return ddl_tables.alter_table(context, name, request)
        case apply.CreatesIndex(create_index=made):
            return ddl_indexes.create_index(context, _table(made), made.index)
        case apply.DropsIndex(drop_index=gone):
            return ddl_indexes.drop_index(context, _table(gone), gone.index)
        case apply.ValidatesIndex(validate_index=index):
            return ddl_indexes.validate_index(context, _table(index), index.index)
        case apply.AltersCatalog(alter_catalog=patch):
            fields = {name: getattr(patch, name) for name in CatalogPatch.model_fields}
            return ddl_catalogs.alter_catalog(context, patch.catalog, CatalogPatch(**fields))
    raise AssertionError(type(command).__name__)


def _table(named: apply.IndexToCreate | apply.IndexOfTable) -> FullTableName:
    return FullTableName(named.catalog, named.schema_name, named.table)
