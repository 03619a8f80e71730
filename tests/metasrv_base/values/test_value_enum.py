"""A member of a stored enum is serialized without a call of a Python function."""

import pickle
import sys
from types import FrameType
from typing import Any

from keys.model.records import Lock, LockMode
from metasrv_base.values.value_enum import ValueEnum


class Colour(ValueEnum):
    RED = "red"


def test_given_a_member_when_it_is_asked_then_it_is_that_of_a_strenum() -> None:
    assert Colour.RED.value == "red"
    assert Colour("red") is Colour.RED
    assert list(Colour) == [Colour.RED]
    assert f"{Colour.RED}" == "red"
    assert pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED


def test_given_a_model_with_a_member_when_serialized_then_no_function_of_enum_is_called() -> None:
    lock = Lock(key="table:1", mode=LockMode.SHARED)
    called: list[str] = []

    def look(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        text, plain = lock.model_dump_json(), lock.model_dump(mode="json")
    finally:
        sys.setprofile(None)

    assert text == '{"key":"table:1","mode":"shared"}'
    assert plain == {"key": "table:1", "mode": "shared"}
    assert [name for name in called if name.endswith("enum.py")] == []
