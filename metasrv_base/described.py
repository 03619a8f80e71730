"""Models whose fields say below themselves what they are, read when a document asks for it.

pydantic reads such texts while a class is made (`use_attribute_docstrings`): the source of every
model, at every start of every program, a quarter of its instructions. Few programs are asked.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Described(BaseModel):
    """The JSON schema of one has the texts as descriptions."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shape = handler(core_schema)
        properties = handler.resolve_ref_schema(shape).get("properties", {})
        for name, text in descriptions(cls).items():
            properties[_shown(cls, name)].setdefault("description", text)
        return shape


@cache
def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """Field -> its text, of those that have one."""
    texts: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if issubclass(part, Described) and part is not Described:
            texts |= _written_in(part)
    return {name: text for name, text in texts.items() if name in model.model_fields}


def _written_in(model: type[BaseModel]) -> Mapping[str, str]:
    return _texts_of(model.__module__).get(model.__qualname__, {})


@cache
def _texts_of(module: str) -> Mapping[str, Mapping[str, str]]:
    """The texts of the fields of all classes of a module, by qualified name: its source is parsed
    once."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:  # only what is compiled was installed
        return {}
    return dict(_classes_in(ast.parse(source), ""))


def _classes_in(node: ast.AST, within: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef():
                name = f"{within}{child.name}"
                yield name, _texts_in(child)
                yield from _classes_in(child, f"{name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _classes_in(child, f"{within}{child.name}.<locals>.")
            case ast.stmt():
                yield from _classes_in(child, within)


def _texts_in(tree: ast.ClassDef) -> Mapping[str, str]:
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(below.value.value, str)
    }


def _shown(model: type[BaseModel], name: str) -> str:
    field = model.model_fields[name]
    return field.serialization_alias or field.alias or name
