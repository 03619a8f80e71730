"""Partition rules over key columns, a stored format (golden: partition.txt): row -> region.

hash     blake2b with a digest of 8 bytes over the encoded partition columns (`keycodec`), read as
         a big-endian number, modulo `count`
range    region i holds what is below bound i and not below bound i-1, in the order of the encoded
         columns; n bounds make n+1 regions

The rule is stored with column ids, so a rename never reaches it; the wire has names instead.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field

from metasrv_base.described import Described
from metasrv_base.errors import Refused
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import Value, from_json

DIGEST_BYTES = 8


class _Rule(Described):
    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[int, ...]
    """Ids of the partition columns, all of them in the primary key."""


class HashRule(_Rule):
    """Rows spread evenly over `count` regions."""

    by: Literal["hash"] = "hash"
    count: int

    @property
    def regions(self) -> int:
        return self.count


class RangeRule(_Rule):
    """Neighbouring rows stay together."""

    by: Literal["range"] = "range"
    bounds: tuple[tuple[JsonScalar, ...], ...]
    """Each the first key of a region, in JSON form; rising. The first region has none."""

    @property
    def regions(self) -> int:
        return len(self.bounds) + 1


PartitionRule = Annotated[HashRule | RangeRule, Field(discriminator="by")]


@dataclass(frozen=True, slots=True)
class Router:
    """A rule made ready for rows. `types` are those of the rule's columns, in its order."""

    types: tuple[ColumnType, ...]
    regions: int
    bounds: tuple[bytes, ...] | None
    """Encoded and rising; None: by hash."""

    def number(self, values: Sequence[Value]) -> int:
        """The region number of one row; `values` are its partition columns."""
        return self._number(encode(self.types, values))

    def numbers(self, arrays: Sequence[pa.Array]) -> pa.Int32Array:
        """The region numbers of many rows; `arrays` are their partition columns."""
        if self.regions == 1:
            return pa.repeat(pa.scalar(0, pa.int32()), len(arrays[0]))
        keys: list[bytes] = encode_batch(self.types, arrays).to_pylist()
        return pa.array([self._number(key) for key in keys], pa.int32())

    def _number(self, key: bytes) -> int:
        if self.bounds is not None:
            return bisect_right(self.bounds, key)
        digest = blake2b(key, digest_size=DIGEST_BYTES).digest()
        return int.from_bytes(digest, "big") % self.regions


def router(rule: HashRule | RangeRule, types: Sequence[ColumnType], pointer: str = "") -> Router:
    """Raises Refused `invalid-request`, pointing into `{pointer}/bounds`, if the bounds are not
    values of the columns, or do not rise."""
    assert len(types) == len(rule.columns), "one type for each partition column"
    if isinstance(rule, HashRule):
        return Router(tuple(types), rule.count, None)
    bounds = encode_bounds(types, rule.bounds, pointer)
    return Router(tuple(types), rule.regions, bounds)


def encode_bounds(
    types: Sequence[ColumnType], bounds: Sequence[Sequence[JsonScalar]], pointer: str = ""
) -> tuple[bytes, ...]:
    """Bounds as keys, checked. Raises Refused `invalid-request`."""
    keys: list[bytes] = []
    for position, bound in enumerate(bounds):
        here = f"{pointer}/bounds/{position}"
        if len(bound) != len(types):
            raise Refused(
                "invalid-request",
                pointer=here,
                found=f"{len(bound)} values",
                expected=f"{len(types)}, one for each partition column",
            )
        key = encode(
            types, [_bound_value(types[i], bound[i], f"{here}/{i}") for i in range(len(bound))]
        )
        if keys and key <= keys[-1]:
            raise Refused(
                "invalid-request", pointer=here, expected="a bound above the one before it"
            )
        keys.append(key)
    return tuple(keys)


def _bound_value(type: ColumnType, value: JsonScalar, pointer: str) -> Value:
    converted = from_json(type, value, pointer)
    if converted != converted:
        raise Refused("invalid-request", pointer=pointer, found="NaN", expected="a number")
    return converted


def region_number(
    rule: HashRule | RangeRule, types: Sequence[ColumnType], values: Sequence[Value]
) -> int:
    """The region number of one row. For many rows keep the `router`."""
    return router(rule, types).number(values)
