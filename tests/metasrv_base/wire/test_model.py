"""Every whole number that travels has an end: what JSON says can be stored, and be said again."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from pydantic.json_schema import models_json_schema

import metasrv_base.wire
from metasrv_base.wire.model import WireModel

for module in pkgutil.walk_packages(metasrv_base.wire.__path__, "metasrv_base.wire."):
    importlib.import_module(module.name)


def subclasses(of: type[WireModel]) -> Iterator[type[WireModel]]:
    for one in of.__subclasses__():
        yield one
        yield from subclasses(one)


MODELS = {
    one.__qualname__: one
    for one in subclasses(WireModel)
    if one.__module__.startswith("metasrv_base.wire")
}


@cache
def shapes() -> Mapping[str, Mapping[str, Any]]:
    """The schema of each model, all made at once: most are part of several."""
    references, made = models_json_schema([(each, "validation") for each in MODELS.values()])
    return {
        model.__qualname__: made["$defs"][reference["$ref"].rpartition("/")[2]]
        for (model, _), reference in references.items()
    }


def endless(schema: Any, path: str = "") -> Iterator[str]:
    """Where *schema* has a whole number without an end."""
    if isinstance(schema, Mapping):
        ends = {"maximum", "exclusiveMaximum", "const", "enum"}
        if schema.get("type") == "integer" and not ends & schema.keys():
            yield path
        for name, part in schema.items():
            yield from endless(part, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, part in enumerate(schema):
            yield from endless(part, f"{path}/{number}")


@pytest.mark.parametrize("model", MODELS)
def test_given_what_travels_when_described_then_each_whole_number_has_an_end(model: str) -> None:
    properties = dict(shapes()[model].get("properties", {}))
    properties.pop("bounds", None)  # values of users, judged by the types of their columns

    assert list(endless(properties)) == []
