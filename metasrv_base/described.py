"""Models whose fields say below themselves what they are, read when a document asks for it.

pydantic reads such texts while a class is made (`use_attribute_docstrings`): the source of every
model, at every start of every program, a quarter of its instructions. Few programs are asked.
"""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent
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


def _written_in(model: type[BaseModel]) -> dict[str, str]:
    try:
        source = inspect.getsource(model)
    except OSError:  # only what is compiled was installed
        return {}
    (tree,) = ast.parse(dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
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
