"""Values of `frozen` are those of `dataclass(frozen=True, slots=True)`, but for the constructor."""

from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from pickle import dumps, loads

import pytest

from metasrv_base.values.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 0
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Sealed:
    x: int
    y: int = 0
    name: str = field(default="", compare=False)


@frozen
class ByX:
    x: int
    y: int

    def __hash__(self) -> int:
        return self.x


def test_given_two_with_equal_fields_when_compared_then_equal_with_the_hash_of_a_dataclass() -> (
    None
):
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(1, 3)
    assert hash(Point(1, 2, "a")) == hash(Point(1, 2)) == hash(Sealed(1, 2))
    assert hash(ByX(7, 1)) == 7
    assert repr(Point(1)) == repr(Sealed(1)).replace("Sealed", "Point")


def test_given_a_value_when_copied_replaced_and_pickled_then_as_before() -> None:
    point = Point(1, 2, "a")

    assert replace(point, y=3) == Point(1, 3)
    for other in (copy(point), deepcopy(point), loads(dumps(point))):
        assert (other, other.name) == (point, "a")


def test_given_a_value_when_a_field_is_set_then_only_the_type_checker_refuses() -> None:
    point = Point(1)

    point.y = 5  # type: ignore[misc]  # mypy fails on this comment where it would allow it

    assert point.y == 5
    with pytest.raises(AttributeError):
        point.z = 6  # type: ignore[attr-defined]
