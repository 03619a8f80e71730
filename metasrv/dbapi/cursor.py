"""The cursor of PEP 249: one statement at a time, with its result in memory."""

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from metasrv.dbapi.batches import Repeated
from metasrv.dbapi.errors import (
    DatabaseError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    database_error,
    translated,
)
from metasrv.dbapi.placeholders import template
from metasrv.dbapi.types import Column, Read, described, reader
from metasrv_base.errors import MetaError
from metasrv_base.sql.split import split

if TYPE_CHECKING:
    from metasrv_base.wire.language.sql import StatementResult

Row: TypeAlias = tuple[Any, ...]
_QUERIES = ("SELECT", "SHOW", "DESCRIBE", "EXPLAIN")


class StatementRunner(Protocol):
    """The part of a connection that a cursor uses."""

    def run(self, text: str, results: "list[StatementResult]") -> None:
        """Adds the results of the statements of a text. Raises the errors of the SDK: what was
        added is done."""
        ...

    def must_be_open(self) -> None:
        """Raises InterfaceError."""
        ...


class Cursor:
    """Made by `Connection.cursor`; for one thread at a time. A context, which closes it."""

    arraysize = 1
    """Rows of `fetchmany` without a size."""

    def __init__(self, connection: StatementRunner) -> None:
        self.connection = connection
        self.description: tuple[Column, ...] | None = None
        """Columns of the result; None: the statement has none."""
        self.rowcount = -1
        """Rows of the result, or rows that were written; -1: neither."""
        self._rows: Iterator[Sequence[Any]] | None = None
        self._readers: tuple[Read | None, ...] = ()
        self._is_closed = False

    # -- statements

    def execute(self, operation: str, parameters: Sequence[object] = ()) -> Self:
        """Carries out one statement, or one batch from BEGIN to COMMIT. It is done when this
        returns. Raises the errors of metasrv/dbapi/errors.py."""
        self._begin()
        text = template(operation).bound(parameters)
        with translated():
            _must_be_one(text)
            results: list[StatementResult] = []
            self.connection.run(text, results)
            self._take(results[0])
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[object]]) -> Self:
        """Carries the statement out with each of the parameters, in order, many in one request.
        Rows of an `INSERT .. VALUES (..)` are sent as one INSERT of many rows.

        An error has the fact `parameters_done`: so many of the first are done. Of those behind, the
        ones that went in the same request share the fate that the error tells; the rest is not
        begun. Rows of one INSERT are done region by region: where some regions refuse theirs, it is
        a PartlyDoneError. `rowcount` counts the rows that are known to be written.
        """
        self._begin()
        with translated():
            _must_be_one(operation)
        if operation.lstrip().upper().startswith(_QUERIES):
            raise ProgrammingError("`executemany` has no result: use `execute` for a query.")
        done = self.rowcount = 0
        repeated = Repeated.of(operation)
        try:
            for batch in repeated.batches(seq_of_parameters):
                results: list[StatementResult] = []
                try:
                    self.connection.run(repeated.text(batch), results)
                except MetaError as error:
                    applied = error.facts.get("rows_applied")
                    self.rowcount += applied if isinstance(applied, int) else 0
                    raise database_error(error, parameters_done=done + len(results)) from error
                finally:
                    self.rowcount += sum(result.rows_written or 0 for result in results)
                done += len(batch.texts)
        except DatabaseError as error:  # also of parameters that cannot be bound
            error.facts.setdefault("parameters_done", done)
            raise
        return self

    # -- results

    def fetchone(self) -> Row | None:
        """The next row; None: there is none."""
        rows = self._open_rows()
        row = next(rows, None)
        return None if row is None else self._read(row)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """At most *size* rows, `arraysize` by default; fewer at the end."""
        rows = self._open_rows()
        count = self.arraysize if size is None else size
        return [self._read(row) for _, row in zip(range(count), rows, strict=False)]

    def fetchall(self) -> list[Row]:
        """The rows that are left."""
        return [self._read(row) for row in self._open_rows()]

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    # -- the rest of PEP 249

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        self._is_closed = True
        self._rows = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside

    def _begin(self) -> None:
        self._must_be_open()
        self.description, self.rowcount, self._rows = None, -1, None

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("The cursor is closed.")
        self.connection.must_be_open()

    def _open_rows(self) -> Iterator[Sequence[Any]]:
        self._must_be_open()
        if self._rows is None:
            raise ProgrammingError("There is no result: no query was executed.")
        return self._rows

    def _take(self, result: "StatementResult") -> None:
        if result.is_cut:
            more = f"There are more than {len(result.rows)} rows: say LIMIT."
            raise NotSupportedError(more)
        if result.plan is not None:
            plan = result.plan.model_dump_json(by_alias=True)
            self._show(("plan",), ("string",), ((plan,),))
        elif result.columns:
            self._show(result.columns, result.types, result.rows)
        elif result.rows_written is not None:
            self.rowcount = result.rows_written

    def _show(
        self, names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        self.description = described(names, types)
        self.rowcount, self._rows = len(rows), iter(rows)
        self._readers = tuple(reader(column[1]) for column in self.description)

    def _read(self, row: Sequence[Any]) -> Row:
        return tuple(
            value if read is None or value is None else read(value)
            for read, value in zip(self._readers, row, strict=True)
        )


def _must_be_one(text: str) -> None:
    statements = list(split(text))
    if not statements:
        raise ProgrammingError("There is no statement.")
    first, last = statements[0].text.upper(), statements[-1].text.upper()
    if len(statements) > 1 and not (first.startswith("BEGIN") and last.startswith("COMMIT")):
        raise ProgrammingError("One statement at a time, or one batch from BEGIN to COMMIT.")
