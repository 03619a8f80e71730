"""Enums of stored and sent values, whose value is read without a call of Python.

`Enum.value` is two functions of Python, and pydantic asks for it whenever it serializes a member:
of a create 31 times, a thirtieth of all that its leader does.
"""

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING


class ValueEnum(StrEnum):
    """A StrEnum; the value of a member is read without a call of Python."""

    if not TYPE_CHECKING:
        value = property(attrgetter("_value_"))
