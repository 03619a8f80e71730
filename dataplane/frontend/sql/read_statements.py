"""Statements about rows read from their text, each once: a table is looked up where it is named."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.sql.faults import placed
from dataplane.frontend.statements.statements import Statements
from metasrv_base.concurrency.run_in_thread import run_in_thread
from metasrv_base.errors import MetaError
from metasrv_base.rows.layout import Layout
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.faults import fault_at
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.rows.row_commands import RowStatement
from metasrv_base.sql.rows.row_grammar import row_statement
from metasrv_base.sql.split import StatementText, split
from metasrv_base.wire.language.row_sql import RowSqlRequest

STATEMENTS_MAX = 1_000
"""The most statements of one request."""
SHORT_CHARS = 2_048
"""A text that is read on the event loop: within some 5 ms."""


async def read_statements(statements: Statements, request: RowSqlRequest) -> list[RowStatement]:
    """Reads all of a text by the types of the columns of its tables. Raises Refused `invalid-sql`,
    and the errors of tables: with a place and no number, since nothing is done yet."""
    is_short = len(request.text) <= SHORT_CHARS
    reading = _StatementReading(request.text)
    while (new := await run_in_thread(is_short, reading.until_new_table)) is not None:
        try:
            schema = await statements.known(name_of(request, new.table))
        except MetaError as error:
            raise placed(error, request.text, new.offset) from error
        reading.layouts[new.table] = schema.layout
    return reading.statements


def name_of(request: RowSqlRequest, table: QualifiedTable) -> Name:
    return table.catalog or request.catalog, table.schema or request.schema_name, table.table


@dataclass(frozen=True, slots=True)
class _NewTable:
    table: QualifiedTable
    offset: int
    """The place of its name, in characters of the text."""


class _IsNew(Exception):
    """Ends the reading of a statement at a table whose columns are not known."""

    def __init__(self, table: QualifiedTable) -> None:
        self.table = table


@dataclass(slots=True)
class _StatementReading:
    """A text that is read as far as its tables are known. Of one task: it reads in a thread where
    the text is long."""

    source: str
    layouts: dict[QualifiedTable, Layout] = field(default_factory=dict)
    statements: list[RowStatement] = field(default_factory=list)
    """The statements read so far."""
    _texts: Iterator[StatementText] = field(init=False)
    _reader: Reader | None = None
    """The statement that is being read: its tokens are cut once."""

    def __post_init__(self) -> None:
        self._texts = split(self.source)

    def until_new_table(self) -> _NewTable | None:
        """Reads on up to a table that is not in `layouts`. None: all is read."""
        while (reader := self._opened()) is not None:
            try:
                self.statements.append(row_statement(reader, self._layout))
            except _IsNew as new:
                offset = reader.places["/table"].start
                reader.rewind()
                return _NewTable(new.table, offset)
            self._reader = None
        return None

    def _opened(self) -> Reader | None:
        if self._reader is None and (text := next(self._texts, None)) is not None:
            if len(self.statements) == STATEMENTS_MAX:
                actual = f"more than {STATEMENTS_MAX} statements"
                raise fault_at(self.source, text.start, actual=actual, expected="fewer in one text")
            self._reader = Reader(text)
        return self._reader

    def _layout(self, table: QualifiedTable) -> Layout:
        if table not in self.layouts:
            raise _IsNew(table)
        return self.layouts[table]
