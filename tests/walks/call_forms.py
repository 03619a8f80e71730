"""Records the forms in which a request passes through the product, and the classes that carry it.

A *form* is a container in which the code holds the whole request: all of the marks, values that
a test has put into each part of it. Forms are found among the arguments and results of product
functions, and counted by their shape: rows as JSON objects, columns by id, a record batch of such
columns, a sequence of such a class. An encoding (JSON text, a stream of Arrow, a log record) is one
form with the container that it decodes to. A class of the product that has a form in a field, with
other facts beside it, is a *carrier* of it and no form.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from types import FrameType

import pyarrow as pa
from pydantic import BaseModel

from metasrv_base.pack_map import PackMap
from tests.walks.profiling import PACKAGES, product_file, profiled

DEPTH_MAX = 8
INLINE = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Frames that are parts of a function: what they return is not its result."""


class CallForms:
    """The forms of the request that has all of *marks*, each once, in the order met."""

    def __init__(self, *marks: str | int) -> None:
        self._marks = frozenset(marks)
        self.forms: list[str] = []
        self.carriers: list[str] = []

    def __str__(self) -> str:
        forms = (f"{number:>4} {form}" for number, form in enumerate(self.forms, 1))
        return "\n".join(("", *forms, f"carried by {', '.join(self.carriers)}"))

    def recorded(self) -> AbstractContextManager[None]:
        return profiled(self._profile)

    def _profile(self, frame: FrameType, event: str, result: object) -> None:
        if frame.f_code.co_name in INLINE or product_file(frame) is None:
            return
        if event not in ("call", "return"):
            return
        values = _arguments(frame) if event == "call" else [result]
        for value in values:
            if self._is_whole(value):
                self._note(value)

    def _note(self, value: object) -> None:
        while (inner := next(filter(self._is_whole, parts_of(value)), None)) is not None:
            if type(value).__module__.partition(".")[0] in PACKAGES:
                _add(self.carriers, type(value).__name__)
            value = inner
        _add(self.forms, shape_of(value))

    def _is_whole(self, value: object) -> bool:
        return self._marks_in(value, DEPTH_MAX) == self._marks

    def _marks_in(self, value: object, depth: int) -> frozenset[str | int]:
        if isinstance(value, str | int):
            return self._marks & {value}
        if depth == 0:
            return frozenset()
        return frozenset().union(*(self._marks_in(part, depth - 1) for part in parts_of(value)))


def parts_of(value: object) -> Sequence[object]:
    """Elements and fields. A service and the map of all tables have none: they hold the requests of
    others as well."""
    if isinstance(value, PackMap):
        return []
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, pa.RecordBatch | pa.Table):
        return [*value.columns]
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return [*value.to_pylist()]
    if isinstance(value, BaseModel):
        return [getattr(value, name) for name in type(value).model_fields]
    if is_dataclass(value) and not isinstance(value, type) and hasattr(type(value), "__slots__"):
        # A frame of `__init__` sees an instance some of whose slots are not filled yet.
        return [getattr(value, field.name, None) for field in fields(value)]
    return []


def shape_of(value: object) -> str:
    if isinstance(value, pa.RecordBatch | pa.Table):
        return f"record batch of {', '.join(value.schema.names)}"
    if isinstance(value, Mapping):
        keys = {type(key).__name__ for key in value}
        return f"mapping by {' or '.join(sorted(keys))}"
    if isinstance(value, list | tuple):
        elements = {type(element).__name__ for element in value}
        return f"sequence of {' or '.join(sorted(elements))}"
    return type(value).__name__


def _arguments(frame: FrameType) -> list[object]:
    code, given = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [given[name] for name in names if name in given]


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
