"""SELECT from a view of the information schema, which metasrv answers itself."""

import re

from metasrv_base.sql.commands import SelectView, ViewOrder
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.split import StatementText
from metasrv_base.wire.language.sql import ROWS_MAX

SCHEMA = "information_schema"
_VIEW = re.compile(
    rf'SELECT\b[^\']*?\bFROM\s+(?:\w+\s*\.\s*)?"?{SCHEMA}\b', re.IGNORECASE | re.ASCII
)
_COLUMN = "a column"
_LOOKED_AT_CHARS = 4_096


def reads_view(text: StatementText) -> bool:
    """Whether a statement is a query of the information schema."""
    end = min(text.end, text.start + _LOOKED_AT_CHARS)
    return _VIEW.match(text.source[text.start : end]) is not None


def select_view(reader: Reader) -> SelectView:
    """Reads what follows SELECT."""
    columns = None if reader.takes("*") else reader.several(lambda number: _column(reader, number))
    reader.must_take("FROM")
    view = _view(reader)
    where = _where(reader) if reader.takes("WHERE") else None
    order = reader.several(lambda number: _order(reader, number)) if _orders(reader) else ()
    return SelectView(view, columns, where, order, _limit(reader))


def _column(reader: Reader, number: int) -> str:
    name = reader.name(_COLUMN, f"/columns/{number}")
    if not (reader.is_next(",") or reader.is_next("FROM")):
        raise reader.unexpected(", or FROM", choices=("FROM",))
    return name


def _view(reader: Reader) -> str:
    """Reads `[catalog.]information_schema.view`: the views show all catalogs."""
    parts = [reader.name("a view")]
    while len(parts) < 3 and reader.takes("."):
        parts.append(reader.name("a view", "/view"))
    if len(parts) < 2 or parts[-2].lower() != SCHEMA:
        raise reader.unexpected(f"{SCHEMA} and a view, as {SCHEMA}.tables")
    return parts[-1]


def _where(reader: Reader) -> str:
    """Reads a condition as it is written, up to ORDER, LIMIT or the end."""
    with reader.placed("/where"):
        start = end = reader.token.span.start
        while not (reader.is_at_end or reader.is_next("ORDER", "BY") or reader.is_next("LIMIT")):
            end = reader.take().span.end
    if start == end:
        raise reader.unexpected("a condition")
    return reader.statement.source[start:end]


def _orders(reader: Reader) -> bool:
    if not reader.takes("ORDER"):
        return False
    reader.must_take("BY")
    return True


def _order(reader: Reader, number: int) -> ViewOrder:
    name = reader.name(_COLUMN, f"/order_by/{number}")
    descending = reader.takes("DESC")
    if not descending:
        reader.takes("ASC")
    return ViewOrder(name, descending)


def _limit(reader: Reader) -> int | None:
    if not reader.takes("LIMIT"):
        return None
    token, expected = reader.token, f"a number of rows from 0 to {ROWS_MAX}"
    limit = reader.whole_number(expected, "/limit") if len(token.text) < 9 else ROWS_MAX + 1
    if limit > ROWS_MAX:
        raise reader.unexpected(expected, token=token)
    return limit
