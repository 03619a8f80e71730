"""A condition that every row must satisfy: CHECK, with SQL's three values."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.expressions.nodes import columns_of
from metasrv_base.expressions.parse import parse
from metasrv_base.expressions.text import restored, stored
from metasrv_base.expressions.typed import Typed, Types, computed, typed


@dataclass(frozen=True, slots=True)
class Check:
    columns: tuple[int, ...]
    """Ids of those that it names."""
    condition: Typed

    @classmethod
    def of(cls, text: str, types: Types) -> "Check":
        """Reads the stored text of a condition. *types* are those of columns, by id."""
        node = restored(text)
        return cls(columns_of(node), typed(node, types))

    def broken(self, columns: Mapping[int, pa.Array]) -> pa.BooleanArray:
        """The rows that are known to break it. What is null is unknown and breaks nothing; what
        cannot be computed, an overflow or a division by zero, does."""
        (count,) = {len(columns[column]) for column in self.columns}
        try:
            return _not_true(computed(self.condition, columns), count)
        except pa.ArrowInvalid:
            if count == 1:
                return pa.array([True])
        rows = [
            {column: columns[column].slice(row, 1) for column in self.columns}
            for row in range(count)
        ]
        return pa.concat_arrays([self.broken(row) for row in rows])


def asked(text: str, names: Mapping[str, int], types: Types, pointer: str = "") -> str:
    """A condition as a client wrote it in the form that is stored. Raises Refused
    `invalid-request` with what is wrong."""
    node = parse(text, names, pointer)
    typed(node, types, pointer)
    if not columns_of(node):
        expected = "a condition that names a column"
        raise Refused("invalid-request", pointer=pointer, found=text, expected=expected)
    return stored(node)


def _not_true(truth: pa.BooleanArray, count: int) -> pa.BooleanArray:
    broken = pc.fill_null(pc.invert(truth), False)
    return pa.repeat(broken, count) if isinstance(broken, pa.Scalar) else broken
