"""Rows that stand in the way of a constraint or a unique index, as jobs and regions name them."""

from pydantic import Field, JsonValue

from base.wire.model import Int64, SignedInt64, WireModel

OFFENDERS_MAX = 1_000
"""Of each kind that an answer lists; it counts all."""
ROWS_NAMED_MAX = 8
"""Of the rows that have the same values."""


class Duplicate(WireModel):
    """Rows that have the same values in all columns of a unique index."""

    values: list[JsonValue]
    """In JSON form, in the order of the index's columns."""
    row_keys: list[str] = Field(min_length=2, max_length=ROWS_NAMED_MAX)
    """Hexadecimal, sorted: the first few."""


class Offenders(WireModel):
    """Facts of the error `unique-violation`: what a region found when it ingested entries."""

    index: Int64
    duplicates: list[Duplicate] = Field(max_length=OFFENDERS_MAX)
    total: Int64
    """Of values that more rows than one have."""


class Violation(WireModel):
    """A row that does not satisfy a constraint."""

    constraint: SignedInt64
    row_key: str
    """Hexadecimal."""
    values: dict[str, JsonValue]
    """Of the constraint's columns, by id, in JSON form."""
