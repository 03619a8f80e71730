"""Answers as a table for people or as JSON for programs: the only two forms."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import typer

from metasrv.cli.columns import printable, record_lines, table_lines, that_fit

T = TypeVar("T")


def show(body: object, as_json: bool, for_people: Callable[[], object]) -> None:
    """One of the two forms."""
    if as_json:
        show_json(body)
    else:
        for_people()


def show_missed(name: str, as_json: bool) -> None:
    """Shows that a change with `--if-exists` found nothing to change."""
    message = f"{name} does not exist; nothing changed"
    show({"applied": False}, as_json, lambda: typer.echo(message))


def show_changed(
    name: str, body: T | None, as_json: bool, for_people: Callable[[T], object]
) -> None:
    """Shows what a change has made of *name*; None: there was nothing to change."""
    if body is None:
        show_missed(name, as_json)
    else:
        show(body, as_json, lambda: for_people(body))


def show_dropped(name: str, dropped: bool, as_json: bool, hint: str = "") -> None:
    """Prints the result of a drop; *hint* is appended for people."""
    if dropped:
        show({"dropped": name}, as_json, lambda: typer.echo(f"{name} dropped{hint}"))
    else:
        show_missed(name, as_json)


def show_json(body: object) -> None:
    """A model, a list of models, or anything that JSON can hold; on stdout."""
    typer.echo(json.dumps(plain(body), indent=2, ensure_ascii=False))


def show_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], optional: Sequence[str] = ()
) -> None:
    """Prints a line for each row; as wide as it is in a pipe, no wider than a terminal.

    *optional*: columns that a narrow terminal does not show, the first of them first.
    """
    cells = [[printable(_cell(value)) for value in row] for row in rows]
    width = terminal_width()
    shown = that_fit(head, cells, width, optional)
    head = [head[number] for number in shown]
    cells = [[row[number] for number in shown] for row in cells]
    for line in table_lines(head, cells, width):
        typer.echo(line)


def show_facts(facts: Mapping[str, object]) -> None:
    """A line for each that is not None."""
    shown = {name: printable(_cell(value)) for name, value in facts.items() if value is not None}
    for line in record_lines(list(shown), [list(shown.values())], terminal_width()):
        typer.echo(line)


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def terminal_width() -> int | None:
    """Columns of the terminal on stdout; None: stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def value_text(value: object) -> str:
    """A value as text for people: a text as it is, the fields of an object by name, everything else
    as JSON."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={value_text(item)}" for name, item in value.items()) or "-"
    return _inner(value)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value)) or "-"
    return value_text(value)


def _inner(value: object) -> str:
    is_json = isinstance(value, bool | int | float | list | tuple | None)
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


def plain(value: object) -> Any:
    """A model, or a list of models, as JSON has it."""
    if hasattr(value, "model_dump"):  # a model of pydantic, which is not imported for a table
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
