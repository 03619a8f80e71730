"""Changes of a table as clients ask for them: rename, undrop, truncate, the operations of alter."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from metasrv_base.wire.api.tables import (
    REASON_CHARS_MAX,
    ColumnSpec,
    Identifier,
    NumberOfCopies,
)
from metasrv_base.wire.model import Int64, Listed, WireModel

OPERATIONS_MAX = 32
GRACE_S_MAX = 1_800
"""A drop holds the lock of its table meanwhile, and must end within its deadline."""


class RenameRequest(WireModel):
    """`POST T/rename`."""

    new_name: Identifier
    new_schema: Identifier | None = None
    """Null: it stays in its schema."""
    exchange: bool = False
    """The table that bears the new name takes the old one, in the same moment."""
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where the table does not exist, instead of 404."""


class RestoreRequest(WireModel):
    """`POST T/restore`: the alter that brings the definition of an earlier version back."""

    version: Int64 = Field(ge=0)
    """Version of the catalog."""
    grace_s: int = Field(default=0, ge=0, le=GRACE_S_MAX)
    """Seconds for which elements that came since are kept, hidden, as in an alter."""


class UndropRequest(WireModel):
    """`POST T/undrop`."""

    table_id: Int64 | None = None
    """Id of the table to restore, if several tables of that name were dropped."""
    new_name: Identifier | None = None
    """Null: the name it had."""


class PurgeRequest(WireModel):
    """`POST /v1/purges`: a dropped table is deleted for good, before its retention is over."""

    table_id: Int64 | None = None
    table: str | None = Field(default=None, max_length=512)
    """Full name of the table when it was dropped, `catalog.schema.table`; with `table_id` if
    several were dropped under one name."""
    reason: str = Field(min_length=1, max_length=500)
    """Kept with the procedure."""


class TruncateRequest(WireModel):
    """`POST T/truncate`: all rows. Nothing that a client may say makes it fewer, so any field is
    refused."""


class SetOptions(WireModel):
    """Set or remove settings of the table; those not named stay."""

    op: Literal["set_options"]
    options: dict[str, str | None] = Field(min_length=1)
    """Null removes."""


class SetCopies(WireModel):
    """Change how many copies a region has, and how many of them must be in sync for writes. Copies
    are made or removed afterwards, while rows are written."""

    op: Literal["set_copies"]
    replicas: NumberOfCopies | None = None
    """Null: it stays. `default`: the table follows its placement again."""
    min_in_sync: NumberOfCopies | None = None
    """Null: it stays. `default`: that of the placement, or a majority of the table's own number.
    Below a majority of `replicas` and below what it is, it needs a `reason`."""
    reason: str | None = Field(default=None, min_length=1, max_length=REASON_CHARS_MAX)
    """Reason of a lower `min_in_sync`; the log keeps it."""


class RenameColumn(WireModel):
    """Give a column another name; its id and its rows stay."""

    op: Literal["rename_column"]
    name: Identifier
    new_name: Identifier


class AddColumn(WireModel):
    """Add a column. Its default, or null, is also what the rows there are read as, whatever the
    default becomes later. A column that is not nullable needs one."""

    op: Literal["add_column"]
    column: ColumnSpec
    """`default` may also be `{"expression": "now()"}` (of a timestamp or a date): evaluated once,
    when the change is asked for."""
    after: Identifier | None = None
    """Null: behind the last column."""


class DropColumn(WireModel):
    """Drop a column that is no part of the primary key, with all its values."""

    op: Literal["drop_column"]
    name: Identifier


class AlterType(WireModel):
    """Give a column another type, with the values it has. Where not every value of the old type
    fits, new rows must fit at once, then all rows are looked at. One that does not undoes it: 422
    `check-violation` with the keys. Not of a column of the primary key, under an index or a
    constraint."""

    op: Literal["alter_type"]
    name: Identifier
    type: str


class SetDefault(WireModel):
    """Changes the default of a column for rows written later. Existing rows keep their values."""

    op: Literal["set_default"]
    name: Identifier
    default: JsonValue
    """The default in JSON form; null for none."""


class SetNullable(WireModel):
    """Let a column that is no part of the primary key be null, or forbid it."""

    op: Literal["set_nullable"]
    name: Identifier
    nullable: bool
    """Whether it may be null. With false, new rows must have a value at once, then all rows are
    looked at; a row without one undoes the change: 422 `check-violation` with the keys."""


class AddConstraint(WireModel):
    """New rows must satisfy it at once, then all rows are looked at. One that does not undoes it:
    422 `check-violation` with the keys."""

    op: Literal["add_constraint"]
    name: Identifier
    check: str | None = None
    """A condition over the columns, as `price > 0 and currency in ('CHF', 'EUR')`: a row of which
    it is false is refused; one of which it is null is not."""
    unique: Listed[Identifier] | None = None
    """Makes a unique index. Not implemented yet."""
    not_null: Identifier | None = None
    """A column. Once it holds, the column says so itself, and the name is free again."""
    not_valid: bool = False
    """Whether the rows that are there are left unchecked. The constraint stays `write-only` then,
    until `validate_constraint`."""


class ValidateConstraint(WireModel):
    """Look at all rows for a constraint that was added with `not_valid`. If one does not satisfy it
    (422 `check-violation`), the constraint stays as it is."""

    op: Literal["validate_constraint"]
    name: Identifier


class DropConstraint(WireModel):
    """Rows may be against it from now on."""

    op: Literal["drop_constraint"]
    name: Identifier


AlterOperation = Annotated[
    SetOptions
    | SetCopies
    | RenameColumn
    | AddColumn
    | DropColumn
    | AlterType
    | SetDefault
    | SetNullable
    | AddConstraint
    | ValidateConstraint
    | DropConstraint,
    Field(discriminator="op"),
]


class AlterRequest(WireModel):
    """`POST T/alter`: all of the operations, in order, or none."""

    operations: Listed[AlterOperation] = Field(min_length=1, max_length=OPERATIONS_MAX)
    grace_s: int = Field(default=0, ge=0, le=GRACE_S_MAX)
    """Time for which dropped elements are kept, hidden and maintained: until then an undrop
    restores them at once. A column whose type changes keeps its old column for that time. No
    other change of the table begins meanwhile."""
    if_exists: bool = False
    """204 with `Catalog-Applied: false` where the table does not exist, instead of 404."""
