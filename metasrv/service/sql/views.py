"""Queries of the information schema: a view, read as its route reads it."""

from dataclasses import replace

from metasrv.service.sql.faults import with_place
from metasrv.service.sql.selecting import SelectedRows, ViewSelection, select
from metasrv.service.state.state import ServerState
from metasrv.service.views.where import WHERE
from metasrv_base.errors import MetaError, NotFound
from metasrv_base.sql import commands as sql
from metasrv_base.sql.grammar.statements import Statement
from metasrv_base.sql.tokens import TextSpan
from metasrv_base.wire.language.sql import ROWS_MAX

FAULT = "/fault"


async def selected(
    state: ServerState, statement: Statement, command: sql.SelectView, number: int
) -> SelectedRows:
    """Raises Refused or NotFound with the place in the text."""
    query = ViewSelection(
        command.view,
        command.columns or (),
        command.where,
        tuple((order.column, order.descending) for order in command.order_by),
        ROWS_MAX if command.limit is None else command.limit,
    )
    try:
        return await select(state, query)
    except NotFound as error:
        raise with_place(error, statement, number, "/view") from error
    except MetaError as error:
        raise with_place(error, *_placed(error, statement, number)) from error


def _placed(error: MetaError, statement: Statement, number: int) -> tuple[Statement, int, str]:
    """The statement with the place of the fault, and the pointer to it."""
    pointer, offset = error.facts.get("pointer"), error.facts.get("offset")
    if pointer == WHERE and isinstance(offset, int):
        start = statement.places["/where"].start + offset
        places = {**statement.places, FAULT: TextSpan(start, start + 1)}
        return replace(statement, places=places), number, FAULT
    if pointer == WHERE:
        return statement, number, "/where"
    return statement, number, str(pointer or "")
