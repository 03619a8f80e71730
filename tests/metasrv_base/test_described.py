"""The text below a field is its description in every document, and costs a start nothing."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import Field

from metasrv_base.described import Described, descriptions


class Part(Described):
    size: int
    """In bytes.
    Never negative."""
    plain: int = 0


class Whole(Part):
    part: Part
    """Its first
    part."""
    of: int = Field(alias="schema")
    """By its other name."""
    told: int = Field(description="Told in place.")
    """Not this."""


def test_given_texts_below_fields_when_asked_then_each_is_that_of_its_field() -> None:
    assert descriptions(Whole) == {
        "size": "In bytes.\nNever negative.",
        "part": "Its first\npart.",
        "of": "By its other name.",
        "told": "Not this.",
    }


def test_given_a_schema_when_made_then_it_has_the_texts_by_the_names_that_travel() -> None:
    shape = Whole.model_json_schema()

    shown = {name: field.get("description") for name, field in shape["properties"].items()}
    assert shown == {
        "size": "In bytes.\nNever negative.",
        "plain": None,
        "part": "Its first\npart.",
        "schema": "By its other name.",
        "told": "Told in place.",
    }
    assert shape["$defs"]["Part"]["properties"]["size"]["description"] == shown["size"]


def test_given_a_model_when_made_then_its_source_was_not_read() -> None:
    assert {field.description for field in Part.model_fields.values()} == {None}


def test_given_no_source_then_there_are_no_texts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Compiled(Described):
        size: int
        """In bytes."""

    alone = ModuleType("compiled_alone")
    alone.__file__ = str(tmp_path / "compiled_alone.pyc")
    monkeypatch.setitem(sys.modules, alone.__name__, alone)
    monkeypatch.setattr(Compiled, "__module__", alone.__name__)

    assert descriptions(Compiled) == {}


def test_given_a_class_in_a_function_then_it_has_its_own_texts() -> None:
    class Part(Described):
        size: int
        """In pages."""

    assert descriptions(Part) == {"size": "In pages."}
