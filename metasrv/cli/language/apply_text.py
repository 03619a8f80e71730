"""The plan of an apply for people: a tree of objects and their operations, in colour."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from metasrv.cli.output import counted

if TYPE_CHECKING:
    from metasrv_base.wire.language.apply import PlannedOperation

NEW, GONE, CHANGED = "+", "-", "~"
COLOURS = {NEW: "green", GONE: "red", CHANGED: "yellow"}
SIGNS = {"create": NEW, "add": NEW, "drop": GONE}


def plan_lines(operations: "Sequence[PlannedOperation]") -> Iterator[str]:
    """Yields a line for each object and, below it, one for each operation; a count at the end."""
    if not operations:
        yield "no difference: the catalog is as declared"
        return
    for (what, name), group in groupby(operations, key=lambda each: (each.what, each.name)):
        yield typer.style(f"{what} {name}", bold=True)
        yield from (f"  {_line(each)}" for each in group)
    losses = sum(each.destructive is not None for each in operations)
    yield f"{counted(len(operations), 'operation')}, {losses} of them destructive"


def _line(operation: "PlannedOperation") -> str:
    sign = SIGNS.get(operation.text.partition(" ")[0], CHANGED)
    line = typer.style(f"{sign} {operation.text}", fg=COLOURS[sign])
    if operation.destructive is None:
        return line
    return f"{line}  {typer.style(f'destructive: {operation.destructive}', fg='red', bold=True)}"
