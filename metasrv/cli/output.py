"""Answers as a table for people or as JSON for programs: the only two forms."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import typer
from pydantic import BaseModel

PIPE_WIDTH = 1_000
"""Columns of a table that nobody looks at: a program that reads it wants one line per row."""


def show(found: object, as_json: bool, for_people: Callable[[], None]) -> None:
    """One of the two forms."""
    if as_json:
        show_json(found)
    else:
        for_people()


def show_json(found: object) -> None:
    """A model, a list of models, or anything that JSON can hold; on stdout."""
    typer.echo(json.dumps(_plain(found), indent=2, ensure_ascii=False))


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(head):
        table.add_column(name, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, soft_wrap=False).print(table)


def show_facts(facts: Mapping[str, object]) -> None:
    """A line for each that is not None."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        if value is not None:
            typer.echo(f"{name:{width}}  {_cell(value)}")


def said(value: object) -> str:
    """For people: a text as it is, what is in an object by name, everything else as JSON."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={said(item)}" for name, item in value.items()) or "-"
    return _inner(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(said, value)) or "-"
    return said(value)


def _inner(value: object) -> str:
    is_json = isinstance(value, bool | int | float | list | tuple | None)
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


def _plain(found: object) -> Any:
    if isinstance(found, BaseModel):
        return found.model_dump(mode="json")
    if isinstance(found, list | tuple):
        return [_plain(one) for one in found]
    return found
