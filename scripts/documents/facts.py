"""Facts about Python files, read from their syntax trees: a file is parsed once in a process.

A tree is some hundred times the size of its facts, and is not kept.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Facts:
    """Names in the order of `ast.walk`, with repetitions, those inside of functions included."""

    modules: tuple[str, ...]
    """Modules that are imported, by dotted name."""
    members: tuple[str, ...]
    """`module.name` for each name that is imported from a module."""
    classes: tuple[str, ...]
    bound: tuple[str, ...]
    """Variables that are assigned, and parameters."""
    texts: tuple[str, ...]
    """Strings that are statements: docstrings, those of fields included."""
    functions: tuple[str, ...]


def facts(file: Path) -> Facts:
    """Returns the facts about *file*, read again only if its time of change or size differs."""
    stat = file.stat()
    return _facts(file, stat.st_mtime_ns, stat.st_size)


@cache
def _facts(file: Path, _mtime_ns: int, _size: int) -> Facts:
    return facts_of(file.read_text())


def facts_of(source: str) -> Facts:
    lists: dict[str, list[str]] = {name: [] for name in Facts.__dataclass_fields__}
    for node in ast.walk(ast.parse(source)):
        for name, values in _told(node):
            lists[name] += values
    return Facts(**{name: tuple(values) for name, values in lists.items()})


def _told(node: ast.AST) -> Iterable[tuple[str, Iterable[str]]]:
    """Yields (field of `Facts`, names) of one node."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [("bound", (name,))]
        case ast.arg(arg=name):
            return [("bound", (name,))]
        case ast.Expr(value=ast.Constant(value=str(text))):
            return [("texts", (text,))]
        case ast.ClassDef(name=name):
            return [("classes", (name,))]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [("functions", (name,))]
        case ast.Import(names=names):
            return [("modules", (alias.name for alias in names))]
        case ast.ImportFrom(module=str(module), names=names):
            members = (f"{module}.{alias.name}" for alias in names)
            return [("modules", (module,)), ("members", members)]
        case _:
            return []
