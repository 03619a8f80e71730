"""Shares equal parts of values that stay in memory by the million.

A value keeps a set of the names of the fields it was given, which is larger than all the rest of
it: those of one class share one. Columns are most of a table, and many tables have the same ones:
those share them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import orjson
from immutables import Map
from pydantic import BaseModel

C = TypeVar("C", bound=BaseModel)
SHAPES_MAX = 1_024
"""Lists of columns that are shared; so many stay although their last table is gone."""


def intern_fields(*values: BaseModel) -> None:
    """Makes the values share one set of fields. `model_fields_set` is then wrong for them."""
    for value in values:
        object.__setattr__(value, "__pydantic_fields_set__", _all_fields(type(value)))


@cache
def _all_fields(value_type: type[BaseModel]) -> set[str]:
    return set(value_type.model_fields)


@dataclass(frozen=True, slots=True)
class Shapes(Generic[C]):
    """Lists of columns that tables have, each once."""

    by_text: Map[bytes, tuple[C, ...]] = field(default_factory=Map)

    def met(self, columns: tuple[C, ...]) -> "tuple[Shapes[C], tuple[C, ...]]":
        """The columns to keep in the place of these, and what is known then."""
        shape = _text_of(columns)
        interned = self.by_text.get(shape)
        if interned is not None:
            return self, interned
        intern_fields(*columns)
        if len(self.by_text) == SHAPES_MAX:
            return self, columns
        return Shapes(self.by_text.set(shape, columns)), columns


def _text_of(columns: tuple[BaseModel, ...]) -> bytes:
    """Two have the same only if they say the same: 1 is not 1.0, and -0.0 is not 0."""
    return orjson.dumps([list(vars(column).values()) for column in columns], default=_plain)


def _plain(value: object) -> Mapping[str, Any]:
    assert isinstance(value, BaseModel)
    return vars(value)
