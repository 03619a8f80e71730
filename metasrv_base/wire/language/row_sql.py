"""SQL text for a frontend, and the results of its statements: rows, and no plan of metasrv's."""

from pydantic import Field, JsonValue

from metasrv_base.wire.language.sql import SqlRequest
from metasrv_base.wire.limits import MAX_LAG_MS_MAX
from metasrv_base.wire.model import Int64, Listed, WireModel


class RowSqlRequest(SqlRequest):
    """`POST /v1/sql` of a frontend: statements about rows, in order, with semicolons between
    them."""

    min_catalog_version: Int64 | None = Field(default=None, ge=0)
    """The frontend knows the catalog at this version, or a newer one, before it begins."""
    max_lag: Int64 | None = Field(default=None, ge=1, le=MAX_LAG_MS_MAX)
    """Age in ms that rows of queries may have, so that copies may answer them. Null: leaders
    answer, with the newest rows."""


class RowStatementResult(WireModel):
    """The result of one statement about rows. Its fields are some of those of a result of
    metasrv's (`StatementResult`), so that a client reads both alike."""

    offset: Int64
    """The beginning of the statement in the text, in characters."""
    catalog_version: Int64 | None = None
    """Version of the catalog by which it was carried out."""
    columns: Listed[str] = ()
    """Names of the columns of `rows`."""
    types: Listed[str] = ()
    """Types of the columns, of a query."""
    rows: Listed[Listed[JsonValue]] = ()
    rows_written: Int64 | None = None
    """Rows that an INSERT has written, or an UPDATE (0: there is none with the key); of a DELETE 1,
    whether the row was there or not. Null: the statement writes no rows."""


class RowSqlBody(WireModel):
    """Results of the statements that were begun, in order."""

    results: Listed[RowStatementResult]
    rest: Int64 | None = None
    """The beginning of the first statement that was not begun; null if all were."""
