"""Rows that stand in the way of a constraint or a unique index, as jobs and regions name them."""

import json
from collections.abc import Iterable
from typing import TypeVar

from pydantic import Field, JsonValue

from metasrv_base.wire.model import Int64, SignedInt64, WireModel

OFFENDERS_MAX = 1_000
"""Most offenders of each kind that a response lists; it counts all of them."""
ROWS_NAMED_MAX = 8
"""Most rows named for one duplicate value."""
LISTED_CHARS_MAX = 4 << 20
"""Limit of all offenders that a job's or a region's response lists, in characters of JSON: keys
may take KiB, values MiB."""
VALUE_CHARS_MAX = 256
"""Most characters of a text that are listed; a longer one is cut."""

T = TypeVar("T")


def shown(value: JsonValue) -> JsonValue:
    """A value in JSON form as a list of offenders has it."""
    if isinstance(value, str) and len(value) > VALUE_CHARS_MAX:
        return f"{value[:VALUE_CHARS_MAX]}... ({len(value)} characters)"
    return value


def first_within(values: Iterable[T], chars_max: int) -> list[T]:
    """The first of *values*, JSON values or models, that together take at most *chars_max*
    characters as JSON."""
    kept: list[T] = []
    for value in values:
        chars_max -= len(json.dumps(value, default=dict))
        if chars_max < 0:
            break
        kept.append(value)
    return kept


class Duplicate(WireModel):
    """Rows that have the same values in all columns of a unique index."""

    values: list[JsonValue]
    """Values in JSON form, in the order of the index's columns; long texts are cut."""
    row_keys: list[str] = Field(min_length=2, max_length=ROWS_NAMED_MAX)
    """Hexadecimal, sorted: the first few."""


class Offenders(WireModel):
    """Facts of the error `unique-violation`: what a region found when it ingested entries."""

    index: Int64
    duplicates: list[Duplicate] = Field(max_length=OFFENDERS_MAX)
    total: Int64
    """Number of values that more than one row has."""


class ViolatingRow(WireModel):
    """A row that does not satisfy a constraint."""

    constraint: SignedInt64
    row_key: str
    """Hexadecimal."""
    values: dict[str, JsonValue]
    """Values of the constraint's columns, by id, in JSON form; long texts are cut."""
