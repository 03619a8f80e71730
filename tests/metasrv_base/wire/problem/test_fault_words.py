"""Faults that pydantic finds, in words that name nothing of pydantic or Python."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from metasrv_base.wire.problem.fault_words import fault_of


class Shape(BaseModel):
    """An object with a field."""

    size: int


@pytest.mark.parametrize(
    ("type", "value", "words"),
    [
        (int, "many", "it must be a whole number"),
        (int, 1.5, "it must be a whole number"),
        (float, "much", "it must be a number"),
        (bool, "perhaps", "it must be true or false"),
        (str, 5, "it must be a text"),
        (list[int], 5, "it must be a list"),
        (dict[str, int], 5, "it must be an object"),
        (Shape, 5, "it must be an object"),
        (Shape, {}, "a value is needed"),
        (Annotated[float, Field(gt=0)], -1, "it must be greater than 0"),
        (Annotated[int, Field(le=64)], 65, "it must be less than or equal to 64"),
        (Annotated[str, Field(max_length=2)], "abc", "it must have at most 2 characters"),
    ],
)
def test_given_a_value_that_is_wrong_then_its_fault_is_told_in_plain_words(
    type: Any, value: object, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(type).validate_python(value)

    assert fault_of(caught.value.errors()[0]) == words
