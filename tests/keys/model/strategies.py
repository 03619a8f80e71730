"""Hypothesis strategies for stored values, made from the models themselves."""

from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(min_value=-(1 << 70), max_value=1 << 70),
    str: st.text(max_size=8),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
}
JSON = st.recursive(
    st.one_of(*SIMPLE.values()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(SIMPLE[str], inner, max_size=2),
    max_leaves=4,
)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Every value that a field annotated with *kind* may hold, small ones only."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values_of(args[0])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    if origin in (Union, UnionType):
        return st.one_of(*(values_of(arg) for arg in args))
    if origin is Literal:
        return st.sampled_from(args)
    return _plain(kind)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    if kind is Any:
        return JSON
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    if issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        drawn = {name: values_of(field.annotation) for name, field in fields if name != "format"}
        return st.fixed_dictionaries(drawn).map(lambda made: kind(**made))
    return SIMPLE[kind]
