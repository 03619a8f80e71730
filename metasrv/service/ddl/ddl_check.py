"""check_table, judged and planned. Pure."""

from functools import partial

from metasrv.service.ddl.ddl_tables import table_asked_for, wants_table
from metasrv.service.requests.ddl_request import (
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from procedures.kinds.tables.check_table import CHECK_TABLE, CheckTable


def check_table(context: RequestContext, name: FullTableName) -> DdlRequest:
    return DdlRequest(context, partial(wants_table, name), partial(plan_check_table, context, name))


def plan_check_table(
    context: RequestContext, name: FullTableName, facts: RequestFacts
) -> ProcedureToSubmit:
    table_id = table_asked_for(context, name, facts).info.table_id
    state = CheckTable(
        catalog=name.catalog, schema_name=name.schema, name=name.table, table_id=table_id
    )
    return ProcedureToSubmit(CHECK_TABLE, state, table_id)
