"""Values that each request makes: dataclasses that the type checker alone keeps from change.

A constructor of `dataclass(frozen=True)` calls `object.__setattr__` for every field, which for the
120 values and 580 fields of one create was a twelfth of the leader's instructions
(docs/decisions/0340). Nothing here tests at run time what mypy refuses before.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Returns *cls* as `dataclass(frozen=True, slots=True)` does, equality and hash alike, with the
    constructor of a dataclass that may change."""
    has_own_hash = "__hash__" in cls.__dict__
    return dataclass(slots=True, unsafe_hash=not has_own_hash)(cls)
