"""Messages of a check of a table's data, and the seven rules of a consistent table.

F1 (VLDB 2013, section 4.1): a database represents a schema if every value, entry and row in it is
owned by an element of the schema, and every element has what it needs. Of constraints there is a
third set: a unique index is one.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, Strict

from metasrv_base.wire.model import Int64, PositiveInt64, WireModel

FAULTS_MAX = 1_000
"""Most faults of each rule that a response lists; it counts all of them."""


class DataRule(StrEnum):
    """The rules of rows on disk, in the order in which F1 gives them."""

    VALUE_UNOWNED = "value-unowned"
    """A row has a value in a column that the table does not have."""
    REQUIRED_MISSING = "required-missing"
    """A row has no value in a required column."""
    ENTRY_UNOWNED = "entry-unowned"
    """There are entries of an index that the table does not have."""
    ENTRY_MISSING = "entry-missing"
    """A row has no entry in a public index."""
    ENTRY_WRONG = "entry-wrong"
    """An entry has no row, or its row has other values."""
    CONSTRAINT_BROKEN = "constraint-broken"
    """A public constraint does not hold of a row; or several rows share values that must differ."""
    BYTES_UNEXPLAINED = "bytes-unexplained"
    """Data is stored that belongs to no element of the table."""


class DataFault(WireModel):
    """A fault. Fields that do not apply are null."""

    rule: DataRule
    element: Int64 | None = None
    """Id of the column, index or constraint."""
    row_keys: list[str] = Field(default_factory=list)
    """Hexadecimal."""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """Values of the element's columns, by id, in JSON form."""
    entry_key: str | None = None
    """Hexadecimal."""
    file: str | None = None
    """Relative to the region's root."""
    count: PositiveInt64 = 1
    """Number of values or entries in the file; for unexplained data, its bytes."""


class DataFaults(WireModel):
    """The first of each rule, and how many there are."""

    found: list[DataFault] = Field(default_factory=list)
    totals: dict[DataRule, Int64] = Field(default_factory=dict)
    """Rules that are kept are not in it."""

    @property
    def is_clean(self) -> bool:
        return not self.totals


class CheckedIndex(WireModel):
    """An index that the table has, in whatever state."""

    id: Int64
    columns: list[Int64] = Field(min_length=1)
    """Column ids, in the order of the entries' keys."""
    unique: bool = False
    complete: bool
    """Whether the index is public: every row must then have its entry, and rows of a unique one
    must differ. Entries of any other index may be missing, but not wrong."""


Rule = Annotated[DataRule, Strict(False)]


class TableFault(WireModel):
    """A fault as people know it: elements and columns by name. What does not apply is null."""

    rule: Rule
    region_id: str
    element: str | None = None
    """Name of the column, index or constraint; the id of one that the table does not have."""
    keys: list[dict[str, JsonValue] | str] = Field(default_factory=list)
    """Primary keys of rows, in JSON form by column; hexadecimal where a key is none."""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    """Values of the element's columns."""
    entry_key: str | None = None
    """Hexadecimal."""
    file: str | None = None
    """Relative to the region's root."""
    count: Int64 = 1
    """Number of values or entries in the file; for unexplained data, its bytes."""


class TableCheckBody(WireModel):
    """The result of a check of all rows and entries of a table, each region as of one moment."""

    table_id: Int64
    name: str
    rows: Int64
    entries: Int64
    clean: bool
    totals: dict[Rule, Int64]
    """Number of faults by rule; rules without a fault are absent."""
    faults: list[TableFault]
    """The first ones."""
