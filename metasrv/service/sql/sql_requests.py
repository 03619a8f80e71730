"""Changes of SQL as the requests of the routes that make them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from metasrv.service.ddl import ddl_indexes, ddl_tables
from metasrv.service.ddl.batch import batch
from metasrv.service.ddl.batch_members import ddl_request_of
from metasrv.service.requests.ddl_request import DdlRequest
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.sql.batch_members import member_of
from metasrv.service.sql.session import SqlSession
from metasrv_base.sql import commands as sql
from metasrv_base.sql.grammar.statements import Statement
from metasrv_base.wire.api.batches import BatchCommandBody, BatchRequest, NotInBatch

Alone: TypeAlias = (
    sql.AlterTableStatement
    | sql.TruncateTableStatement
    | sql.UndropTableStatement
    | sql.CreateIndexStatement
    | sql.ValidateIndexStatement
    | sql.DropIndexStatement
)


def request_of(context: RequestContext, session: SqlSession, change: sql.Change) -> DdlRequest:
    """Raises Refused with every fault of the change."""
    if isinstance(change, Alone):
        return _alone(context, session, change)
    member = member_of(session, change)
    assert member is not None, f"{type(change).__name__} is a request of its own"
    return ddl_request_of(context, member)


def _alone(context: RequestContext, session: SqlSession, change: Alone) -> DdlRequest:
    name = session.table(change.table)
    match change:
        case sql.AlterTableStatement(request=alter):
            return ddl_tables.alter_table(context, name, alter)
        case sql.TruncateTableStatement():
            return ddl_tables.truncate_table(context, name)
        case sql.UndropTableStatement(request=undrop):
            return ddl_tables.undrop_table(context, name, undrop)
        case sql.CreateIndexStatement(spec=spec):
            return ddl_indexes.create_index(context, name, spec)
        case sql.ValidateIndexStatement(index=index):
            return ddl_indexes.validate_index(context, name, index)
        case sql.DropIndexStatement(index=index, if_exists=if_exists):
            return ddl_indexes.drop_index(replace(context, if_exists=if_exists), name, index)
        case _:
            assert_never(change)


def batch_request(
    context: RequestContext, session: SqlSession, members: Sequence[Statement]
) -> DdlRequest:
    """One batch of the statements between BEGIN and COMMIT. Raises Refused with every fault."""
    commands = [_member(session, statement.command) for statement in members]
    return batch(context, BatchRequest(commands=tuple(commands)))


def _member(session: SqlSession, command: sql.Command) -> BatchCommandBody:
    """A command of the batch; one that a batch does not take is named, so that it says so."""
    assert isinstance(command, sql.CHANGES)
    member = member_of(session, command)
    return NotInBatch(**{_NAMES[type(command)]: {}}) if member is None else member


_NAMES: Mapping[type[sql.Change], str] = {
    sql.TruncateTableStatement: "truncate_table",
    sql.UndropTableStatement: "undrop_table",
    sql.CreateIndexStatement: "create_index",
    sql.ValidateIndexStatement: "validate_index",
    sql.DropIndexStatement: "drop_index",
}
"""Changes that no batch takes, as batches call them."""
