"""A table and its changes as flags and files say them."""

import json
import sys
from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metasrv.cli.catalog.column_text import column_of, default_of, type_of
from metasrv.cli.errors.json_places import file_places
from metasrv.cli.errors.places import Places, reason_of
from metasrv.cli.near import must_be_among
from metasrv.cli.options import confirm
from metasrv_base.errors import NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.tables import TableBody


def spec_of(
    name: str,
    columns: Sequence[str],
    key: Sequence[str],
    partitions: int,
    options: Sequence[str],
) -> dict[str, Any]:
    """A TableSpec from flags; *options*: NAME=VALUE. Columns of the key are never nullable."""
    if not columns or not key:
        raise typer.BadParameter("give at least one --column and one --key")
    column_specs = [column_of(text, "--column") for text in columns]
    names = [spec["name"] for spec in column_specs]
    for name_of_key in key:
        must_be_among(name_of_key, names, f"--key {name_of_key}", "column")
    for spec in column_specs:
        spec["nullable"] = spec["nullable"] and spec["name"] not in key
    partition = {"by": "hash", "columns": list(key), "count": partitions}
    return {
        "name": name,
        "columns": column_specs,
        "primary_key": list(key),
        "partition": partition if partitions > 1 else None,
        "options": dict(pair(text, "NAME=VALUE", "--option") for text in options),
    }


def column_operations(
    renamed: Sequence[str] | None,
    added: Sequence[str] | None,
    dropped: Sequence[str] | None,
    retyped: Sequence[str] | None,
    defaults: Sequence[str] | None,
) -> list[dict[str, Any]]:
    """Operations of an alter on columns, in this order. Defaults are text: `typed_defaults`."""
    names = (pair(text, "OLD:NEW", "--rename-column") for text in renamed or ())
    types = (pair(text, "COLUMN:TYPE", "--alter-type") for text in retyped or ())
    values = (pair(text, "COLUMN=DEFAULT", "--set-default") for text in defaults or ())
    return [
        *({"op": "rename_column", "name": old, "new_name": new} for old, new in names),
        *({"op": "add_column", "column": column_of(text, "--add-column")} for text in added or ()),
        *({"op": "drop_column", "name": name} for name in dropped or ()),
        *(
            {"op": "alter_type", "name": name, "type": type_of(type, f"--alter-type {name}").text}
            for name, type in types
        ),
        *({"op": "set_default", "name": name, "default": value} for name, value in values),
    ]


def constraint_operations(
    required: Sequence[str],
    checks: Sequence[str],
    validated: Sequence[str],
    dropped: Sequence[str],
    *,
    not_valid: bool,
) -> list[dict[str, Any]]:
    """The operations of an alter on constraints, in this order."""
    return [
        *({"op": "set_nullable", "name": name, "nullable": False} for name in required),
        *(
            {"op": "add_constraint", "name": name, "check": condition, "not_valid": not_valid}
            for name, condition in (
                pair(text, "NAME=CONDITION, as 'paid=price > 0'", "--check") for text in checks
            )
        ),
        *({"op": "validate_constraint", "name": name} for name in validated),
        *({"op": "drop_constraint", "name": name} for name in dropped),
    ]


def option_operations(texts: Sequence[str], unset: Sequence[str]) -> list[dict[str, Any]]:
    """The operation of an alter that sets all options. *texts*: NAME=VALUE."""
    options: dict[str, str | None] = dict(
        pair(text, "NAME=VALUE", "--set-option") for text in texts
    )
    options.update(dict.fromkeys(unset))
    return [{"op": "set_options", "options": options}] if options else []


def copies_operations(
    replicas: str | None, min_in_sync: str | None, reason: str | None
) -> list[dict[str, Any]]:
    """The operation of an alter that changes numbers of copies."""
    named = {"replicas": replicas, "min_in_sync": min_in_sync}
    numbers = {
        name: number_or_default(text, f"--{name.replace('_', '-')}")
        for name, text in named.items()
        if text is not None
    }
    if not numbers:
        return []
    return [{"op": "set_copies", **numbers, **({} if reason is None else {"reason": reason})}]


def number_or_default(text: str, option: str) -> int | str:
    """A positive whole number, or `default`."""
    if text == "default":
        return text
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise typer.BadParameter(f"{option} {text}: it is a number from 1, or default")
    return int(text)


def places_of(operations: Sequence[Mapping[str, Any]], first: int) -> Places:
    """The option behind each operation of an alter from number *first* on; those before it are of
    a file."""
    made = enumerate(operations[first:], first)
    return {f"/operations/{number}": _option(operation) for number, operation in made}


def _option(operation: Mapping[str, Any]) -> str:
    op, name = operation["op"], operation.get("name", "")
    match op:
        case "set_nullable":
            return f"--{'drop' if operation['nullable'] else 'set'}-not-null {name}"
        case "add_column":
            return f"--add-column {operation['column']['name']}"
        case "add_constraint":
            return f"--check {name}"
        case "validate_constraint":
            return f"--validate {name}"
        case "set_options":
            return "--set-option"
        case "set_copies":
            return "--replicas" if "replicas" in operation else "--min-in-sync"
    return f"--{op.replace('_', '-')} {name}"


def typed_defaults(
    operations: Sequence[Mapping[str, Any]], first: int, body: "TableBody"
) -> list[dict[str, Any]]:
    """The operations, from number *first* on with defaults in the JSON form of their columns: those
    of the table *body*, and those that the operations add, rename or give another type."""
    types = {column.name: column.type for column in body.columns}
    typed = []
    for number, operation in enumerate(operations):
        operation_copy, name = dict(operation), operation.get("name", "")
        match operation_copy["op"]:
            case "add_column":
                types[operation_copy["column"]["name"]] = operation_copy["column"]["type"]
            case "rename_column" if name in types:
                types[operation_copy["new_name"]] = types[name]
            case "alter_type":
                types[name] = operation_copy["type"]
            case "set_default" if name in types and number >= first:
                where = f"--set-default {name}"
                operation_copy["default"] = default_of(
                    type_of(types[name], where), operation_copy["default"]
                )
        typed.append(operation_copy)
    return typed


def named(client: "Client", name: str, if_exists: bool) -> "TableBody | None":
    """The table; None: `--if-exists`, and it does not."""
    try:
        return client.tables.get(name)
    except NotFound:
        if not if_exists:
            raise
        return None


def must_be_sure(body: "TableBody", dropped: Sequence[str], *, yes: bool) -> None:
    """Asks before a dropped column takes indexes along."""
    lost_indexes = [
        index.name for index in body.indexes if not set(dropped).isdisjoint(index.columns)
    ]
    if lost_indexes:
        confirm(f"{', '.join(dropped)} takes {', '.join(lost_indexes)} along.", yes=yes)


def read_spec(path: Path) -> tuple[dict[str, Any], Places]:
    """A TableSpec, and the places of its values."""
    document, text = _read_json(path)
    if not isinstance(document, dict):
        raise typer.BadParameter(f"--file {path}: it must be a TableSpec: an object in JSON")
    return document, file_places(text, str(path))


def read_operations(path: Path) -> tuple[list[dict[str, Any]], Places]:
    """A list, or an object with `operations` as the API takes it; and the places of its values."""
    document, text = _read_json(path)
    root = "/operations"
    if isinstance(document, dict):
        root, document = "", document.get("operations")
    if not isinstance(document, list):
        raise typer.BadParameter(f"--file {path}: it must be a list of operations in JSON")
    return document, file_places(text, str(path), root)


def _read_json(path: Path) -> tuple[Any, str]:
    """The document and its text. Raises BadParameter."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        return json.loads(text), text
    except (OSError, ValueError) as error:
        where = (
            f"{path}:{error.lineno}:{error.colno}" if isinstance(error, JSONDecodeError) else path
        )
        raise typer.BadParameter(f"--file {where}: {reason_of(error)}") from error


def pair(text: str, form: str, option: str) -> tuple[str, str]:
    """Both sides of the mark in *form*, as `OLD:NEW`. Raises BadParameter, which names *option*."""
    mark = ":" if ":" in form else "="
    left, separator, right = text.partition(mark)
    if not separator or not left or not right:
        raise typer.BadParameter(f"{option} {text}: it takes {form}")
    return left, right
