"""Operations of the catalog's history in words. Pure."""

import json
from collections.abc import Iterator

from metasrv_base.wire.api import changes, versions
from metasrv_base.wire.api.versions import CatalogOperation

VALUE_CHARS_MAX = 60  # of a default, a check or an option


def text_of(name: str, operation: CatalogOperation) -> str:
    """Describes an operation to people. *name* is the full name of the object."""
    match operation:
        case versions.CreatedObject() | versions.DroppedObject():
            verb, _, what = operation.op.partition("_")
            return f"{verb} {what} {name}"
        case versions.AlteredCatalog() | versions.RenamedObject() | versions.AlteredObject():
            return _of_object(name, operation)
        case versions.UndroppedTable():
            return f"undrop table {name}"
        case versions.PurgedTable():
            return f"purge table {name}"
        case versions.RenamedTable():
            return f"rename table {name} to {operation.new_name}"
        case versions.CreatedIndex(index=index):
            unique = "unique index" if index.unique else "index"
            return f"create {unique} {index.name} on {name} ({', '.join(index.columns)})"
        case versions.DroppedIndex():
            return f"drop index {operation.name} of {name}"
        case versions.MovedRegions():
            return f"move {len(operation.regions)} regions of {name}"
        case _:
            return f"alter {name}: {altered(operation)}"


def _of_object(
    name: str,
    operation: versions.AlteredCatalog | versions.RenamedObject | versions.AlteredObject,
) -> str:
    verb, _, what = operation.op.partition("_")
    match operation:
        case versions.AlteredCatalog():
            sets = (*operation.settings.items(), *operation.limits.items())
            return f"alter catalog {name}: {', '.join(f'{key}={_value(v)}' for key, v in sets)}"
        case versions.RenamedObject():
            return f"{verb} {what} {name} to {operation.new_name}"
        case versions.AlteredObject():
            return f"{verb} {what} {name}: {', '.join(operation.fields)}"


def altered(operation: changes.AlterOperation) -> str:
    match operation:
        case changes.AddColumn(column=column):
            null = "" if column.nullable else " not null"
            default = "" if column.default is None else f" default {_value(column.default)}"
            return f"add column {column.name} {column.type}{null}{default}"
        case changes.DropColumn():
            return f"drop column {operation.name}"
        case changes.RenameColumn():
            return f"rename column {operation.name} to {operation.new_name}"
        case changes.AlterType():
            return f"type of {operation.name} is {operation.type}"
        case changes.SetDefault(default=None):
            return f"drop default of {operation.name}"
        case changes.SetDefault():
            return f"set default of {operation.name} to {_value(operation.default)}"
        case changes.SetNullable():
            return f"{'drop' if operation.nullable else 'set'} not null of {operation.name}"
        case _:
            return _of_table(operation)


def _of_table(operation: changes.AlterOperation) -> str:
    match operation:
        case changes.SetOptions():
            sets = (f"{key}={_value(value)}" for key, value in operation.options.items())
            return f"set {', '.join(sets)}"
        case changes.SetCopies():
            return f"set {', '.join(_copies(operation))}"
        case changes.DropConstraint():
            return f"drop constraint {operation.name}"
        case changes.ValidateConstraint():
            return f"validate constraint {operation.name}"
        case changes.AddConstraint(check=str(check)):
            return f"add constraint {operation.name} check ({_short(check)})"
        case changes.AddConstraint():
            return f"add constraint {operation.name} not null {operation.not_null}"
    raise AssertionError(operation.op)


def _copies(operation: changes.SetCopies) -> Iterator[str]:
    for name in ("replicas", "min_in_sync"):
        number = getattr(operation, name)
        if number is not None:
            yield f"{name}={number}"


def _value(value: object) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"
