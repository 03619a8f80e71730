"""The base of everything that travels: frozen, strict, and deaf to fields it does not know."""

from typing import Annotated, TypeVar

from pydantic import ConfigDict, Strict

from base.described import Described

T = TypeVar("T")

Listed = Annotated[tuple[T, ...], Strict(False)]
"""A JSON array as a tuple. A strict tuple refuses the list a JSON parser makes; the items of this
one are as strict as ever."""


class WireModel(Described):
    """`true` is not 1, `"7"` is not 7, an unknown field is an error, NaN does not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
