"""Plans import_table. Pure."""

import posixpath
from functools import partial

from metasrv.service.ddl.ddl_tables import locks_of_table, plan_on_table, table_asked_for
from metasrv.service.requests.ddl_request import (
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Refused
from metasrv_base.wire.api.imports import ImportRequest
from procedures.kinds.tables.import_table import IMPORT_TABLE
from procedures.steps.importing import refuse_indexes


def import_table(
    context: RequestContext, name: FullTableName, request: ImportRequest
) -> DdlRequest:
    """Raises Refused for a path that has another spelling: the same files would come twice."""
    for position, path in enumerate(request.paths):
        if posixpath.normpath(path) != path or path in request.paths[:position]:
            expected = "absolute paths without . or .., each once"
            raise Refused(
                "invalid-request", pointer=f"/paths/{position}", found=path, expected=expected
            )
    return DdlRequest(
        context, partial(locks_of_table, name), partial(plan_import, context, name, request)
    )


def plan_import(
    context: RequestContext, name: FullTableName, request: ImportRequest, facts: RequestFacts
) -> ProcedureToSubmit:
    table = table_asked_for(context, name, facts)
    refuse_indexes(table.info)
    return plan_on_table(IMPORT_TABLE, context, name, facts, paths=request.paths)
