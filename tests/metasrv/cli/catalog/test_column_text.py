"""Columns as options say them: types, defaults in the form of their type, near names."""

from typing import Any

import pytest
import typer

from metasrv.cli.catalog.column_text import column_of


@pytest.mark.parametrize(
    ("text", "type", "nullable", "default"),
    [
        ("a:int64", "int64", True, None),
        ("a:int64!", "int64", False, None),
        ("a:int64=7", "int64", True, 7),
        ("a:decimal(10,2)!=1.5", "decimal(10,2)", False, "1.5"),
        ("a decimal(10, 2) not null default 1.5", "decimal(10,2)", False, "1.5"),
        ("a:string=5", "string", True, "5"),
        ('a:string="5"', "string", True, "5"),
        ("a string default 'x y'", "string", True, "x y"),
        ("a:boolean=true", "boolean", True, True),
        ("a:date=2024-01-01", "date", True, "2024-01-01"),
    ],
)
def test_given_a_column_as_text_then_its_spec(
    text: str, type: str, nullable: bool, default: Any
) -> None:
    column = column_of(text, "--column")

    assert (column["name"], column["type"], column["nullable"]) == ("a", type, nullable)
    assert column.get("default") == default


@pytest.mark.parametrize(
    ("type", "near"),
    [
        ("varchar", "`string`"),
        ("VARCHAR(20)", "`string`"),
        ("int", "`int32` or `int64`"),
        ("numeric(9,3)", "`decimal(9,3)`"),
        ("decimal", "`decimal(10,2)`"),
        ("boolaen", "`boolean`"),
    ],
)
def test_given_a_type_that_there_is_not_then_the_near_one_and_all_are_said(
    type: str, near: str
) -> None:
    with pytest.raises(typer.BadParameter) as raised:
        column_of(f"price:{type}", "--column")

    assert raised.value.message.startswith(f"--column price:{type}: there is no type")
    assert f"did you mean {near}?" in raised.value.message
    assert "timestamp(s|ms|us|ns)" in raised.value.message


@pytest.mark.parametrize("text", ["a", "a:", ":int64", "a:int64!!", "a:int64 nott null", ""])
def test_given_what_is_no_column_then_the_form_is_said(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="--add-column"):
        column_of(text, "--add-column")
