"""SQL text as clients send it, and the results of its statements."""

from collections.abc import Sequence

from pydantic import ConfigDict, Field, JsonValue

from metasrv_base.errors import MetaError
from metasrv_base.wire.api.plans import PlanBody
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import Identifier
from metasrv_base.wire.model import Int64, Listed, WireModel

SQL_BYTES_MAX = 16 << 20
"""The largest body of this route, in bytes."""
STATEMENTS_MAX = 10_000
ROWS_MAX = 10_000
"""The bound on the rows of one result."""


class SqlRequest(WireModel):
    """`POST /v1/sql`: statements, in order, with semicolons between them."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    text: str
    catalog: Identifier = "main"
    """Holds the schemas that are named without a catalog."""
    schema_name: Identifier = Field(default="public", alias="schema")
    """Holds the tables that are named without a schema."""


class StatementResult(WireModel):
    """The result of one statement; of a batch, that of all from BEGIN to COMMIT."""

    offset: Int64
    """The beginning of the statement in the text, in characters."""
    applied: bool | None = None
    """Whether the catalog was changed; false: with `IF EXISTS` there was nothing, or with `IF NOT
    EXISTS` an equal object. Null: the statement changes nothing, or its change is not over."""
    catalog_version: Int64 | None = None
    """Version of the catalog that the change made, or that was read."""
    procedure_id: str | None = None
    """The procedure of a change."""
    procedure: ProcedureBody | None = None
    """The procedure of a change that is not over."""
    plan: PlanBody | None = None
    """The plan, of EXPLAIN."""
    columns: Listed[str] = ()
    """Names of the columns of `rows`."""
    types: Listed[str] = ()
    """Types of the columns, of a query and of a list; empty where none is named."""
    rows: Listed[Listed[JsonValue]] = ()
    is_cut: bool = False
    """Whether there are more rows than one result holds; never of a query of a table."""
    rows_written: Int64 | None = None
    """Rows that an INSERT has written, or an UPDATE (0: there is none with the key); of a DELETE 1,
    whether the row was there or not. Null: the statement writes no rows."""


class SqlBody(WireModel):
    """Results of the statements that were begun, in order."""

    results: Listed[StatementResult]
    rest: Int64 | None = None
    """The beginning of the first statement that was not begun, since one before it is not over;
    null if all were."""


class TableSqlBody(WireModel):
    """Answer of `GET T/ddl`."""

    statements: Listed[str]
    """Statements without semicolons; together they make an equal table without rows."""
    catalog_version: Int64


def with_results(error: MetaError, results: Sequence[WireModel]) -> MetaError:
    """The same error, with the results of the statements before the one that failed: member
    `results` of the problem."""
    done = {"results": tuple(results)} if results else {}
    return type(error)(error.code, **{**error.facts, **done})
