"""The base of everything that travels: frozen, strict, and deaf to fields it does not know."""

from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, Strict

from metasrv_base.described import Described

T = TypeVar("T")

Listed = Annotated[tuple[T, ...], Strict(False)]
"""A JSON array as a tuple. A strict tuple refuses the list a JSON parser makes; the items of this
one are as strict as ever."""

INT64_END = 1 << 63
"""Above all terms, epochs, numbers, versions and ids: what etcd, Arrow and our files can hold."""

Int64 = Annotated[int, Field(ge=0, lt=INT64_END)]
SignedInt64 = Annotated[int, Field(ge=-INT64_END, lt=INT64_END)]
PositiveInt64 = Annotated[int, Field(ge=1, lt=INT64_END)]
Int32 = Annotated[int, Field(ge=0, lt=1 << 31)]

REGION_ID_CHARS_MAX = 19
RegionId = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,18})$", max_length=REGION_ID_CHARS_MAX)]
"""Decimal."""


class WireModel(Described):
    """`true` is not 1, `"7"` is not 7, an unknown field is an error, NaN does not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
