"""A model of the catalog that carries out the operations of a plan, and knows nothing of how they
were found."""

from collections.abc import Iterable
from typing import Any

from metasrv.service.declared.canonical import check_of, converted_default, renamed
from metasrv.service.declared.operations import Operation
from metasrv_base.wire.api import batches, changes
from metasrv_base.wire.language import apply, declared
from metasrv_base.wire.language.declared import DeclaredTable, DesiredState

Model = dict[str, Any]
"""`placements`, and for each catalog `spaces` and `schemas`: all of them by name."""


def begun() -> Model:
    default = declared.DeclaredPlacement(name="default")
    return {"placements": {"default": default}, "catalogs": {"main": _catalog()}}


def _catalog() -> dict[str, Any]:
    return {
        "spaces": {"default": declared.DeclaredTablespace(name="default")},
        "schemas": {"public": {}},
    }


def state_of(model: Model) -> DesiredState:
    return DesiredState(
        placements=tuple(model["placements"].values()),
        catalogs=tuple(
            declared.DeclaredCatalog(
                name=name,
                options={},
                tablespaces=tuple(each["spaces"].values()),
                schemas=tuple(
                    declared.DeclaredSchema(name=schema, options={}, tables=tuple(tables.values()))
                    for schema, tables in each["schemas"].items()
                ),
            )
            for name, each in model["catalogs"].items()
        ),
    )


def carry_out(model: Model, operations: Iterable[Operation]) -> None:
    for operation in operations:
        _one(model, operation.command)


def _one(model: Model, command: Any) -> None:
    match command:
        case batches.CreatesCatalog(create_catalog=spec):
            assert spec.name not in model["catalogs"]
            model["catalogs"][spec.name] = _catalog()
        case batches.CreatesSchema(create_schema=made):
            schemas = model["catalogs"][made.catalog]["schemas"]
            assert made.schema_spec.name not in schemas
            schemas[made.schema_spec.name] = {}
        case batches.CreatesPlacement(create_placement=spec):
            assert spec.name not in model["placements"]
            shape = spec.model_dump(exclude={"if_not_exists"}, by_alias=True)
            model["placements"][spec.name] = declared.DeclaredPlacement.model_validate(shape)
        case batches.AltersPlacement(alter_placement=patch):
            _change(model["placements"], patch.placement, patch, "placement")
        case batches.RenamesPlacement(rename_placement=rename):
            _rename(model["placements"], rename.placement, rename.new_name)
            _rename_in_tables(model, model["catalogs"], "placement", rename)
        case batches.CreatesTablespace(create_tablespace=made):
            spaces = model["catalogs"][made.catalog]["spaces"]
            assert made.tablespace.name not in spaces
            spaces[made.tablespace.name] = declared.DeclaredTablespace(
                name=made.tablespace.name, comment=made.tablespace.comment
            )
        case batches.AltersTablespace(alter_tablespace=alter):
            spaces = model["catalogs"][alter.catalog]["spaces"]
            _change(spaces, alter.tablespace, alter, "tablespace", "catalog")
        case batches.RenamesTablespace(rename_tablespace=rename):
            spaces = model["catalogs"][rename.catalog]["spaces"]
            _rename(spaces, rename.tablespace, rename.new_name)
            _rename_in_tables(model, (rename.catalog,), "tablespace", rename)
        case _:
            _of_table(model, command)


def _rename_in_tables(model: Model, catalogs: Iterable[str], field: str, rename: Any) -> None:
    """The names that count now, as reads of tables show them."""
    for name in catalogs:
        for tables in model["catalogs"][name]["schemas"].values():
            for table in tables.values():
                if getattr(table, field) == getattr(rename, field):
                    update = {field: rename.new_name}
                    tables[table.name] = table.model_copy(update=update)


def _change(objects: dict[str, Any], name: str, patch: Any, *keys: str) -> None:
    named = {each: getattr(patch, each) for each in patch.model_fields_set - set(keys)}
    objects[name] = objects[name].model_copy(update=named)


def _rename(objects: dict[str, Any], now: str, new: str) -> None:
    assert new not in objects, f"{new} is there"
    objects[new] = objects.pop(now).model_copy(update={"name": new})


def _of_table(model: Model, command: Any) -> None:
    (named,) = (getattr(command, field) for field in type(command).model_fields)
    tables = model["catalogs"][named.catalog]["schemas"][named.schema_name]
    match command:
        case batches.CreatesTable(create_table=made):
            spec = made.table
            assert spec.name not in tables
            _must_have_places(model, named.catalog, spec)
            shape = spec.model_dump(exclude={"if_not_exists"})
            tables[spec.name] = DeclaredTable.model_validate(shape)
        case batches.DropsTable():
            del tables[named.table]
        case batches.RenamesTable():
            _rename(tables, named.table, named.new_name)
        case batches.AltersTable():
            for operation in named.operations:
                tables[named.table] = _altered(tables[named.table], operation)
        case apply.CreatesIndex():
            table = tables[named.table]
            assert named.index.name not in [index.name for index in table.indexes]
            assert set(named.index.columns) <= {column.name for column in table.columns}
            index = declared.DeclaredIndex.model_validate(
                named.index.model_dump(exclude={"if_not_exists"})
            )
            _set(tables, table, indexes=(*table.indexes, index))
        case apply.DropsIndex():
            table = tables[named.table]
            assert named.index in [index.name for index in table.indexes]
            left = tuple(index for index in table.indexes if index.name != named.index)
            _set(tables, table, indexes=left)
        case _:
            raise AssertionError(command)


def _must_have_places(model: Model, catalog: str, spec: Any) -> None:
    assert spec.placement in (None, *model["placements"])
    assert spec.tablespace in (None, *model["catalogs"][catalog]["spaces"])


def _set(tables: dict[str, DeclaredTable], table: DeclaredTable, **fields: Any) -> None:
    tables[table.name] = table.model_copy(update=fields)


def _altered(table: DeclaredTable, operation: changes.AlterOperation) -> DeclaredTable:
    names = [column.name for column in table.columns]
    rules = {each.name: each for each in table.constraints}
    match operation:
        case changes.SetOptions():
            both = {**table.options, **operation.options}
            options = {name: value for name, value in both.items() if value is not None}
            return table.model_copy(update={"options": options})
        case changes.DropColumn(name=name):
            assert name not in table.primary_key
            assert not any(name in index.columns for index in table.indexes), "under an index"
            assert not any(name in _columns(table, rule) for rule in rules.values())
            left = tuple(column for column in table.columns if column.name != name)
            assert len(left) < len(table.columns)
            return table.model_copy(update={"columns": left})
        case changes.RenameColumn():
            assert operation.new_name not in names
            return renamed(table, {operation.name: operation.new_name})
        case changes.AddColumn(column=column):
            assert column.name not in names
            assert column.nullable or column.default is not None
            place = len(names) if operation.after is None else names.index(operation.after) + 1
            new = declared.DeclaredColumn(**dict(column))
            longer = (*table.columns[:place], new, *table.columns[place:])
            return table.model_copy(update={"columns": longer})
        case changes.AddConstraint():
            assert operation.name not in rules
            rule = declared.DeclaredConstraint(
                name=operation.name,
                check=check_of(str(operation.check), names),
                not_valid=operation.not_valid,
            )
            return table.model_copy(update={"constraints": (*table.constraints, rule)})
        case changes.DropConstraint():
            del rules[operation.name]
            return table.model_copy(update={"constraints": tuple(rules.values())})
        case changes.ValidateConstraint():
            rules[operation.name] = rules[operation.name].model_copy(update={"not_valid": False})
            return table.model_copy(update={"constraints": tuple(rules.values())})
        case _:
            return _with_column(table, operation)


def _columns(table: DeclaredTable, rule: declared.DeclaredConstraint) -> list[str]:
    return [
        each.name
        for each in table.columns
        if each.name in str(rule.check).replace(">", " ").split()
    ]


def _with_column(table: DeclaredTable, operation: Any) -> DeclaredTable:
    (old,) = (column for column in table.columns if column.name == operation.name)
    match operation:
        case changes.AlterType(type=type):
            assert old.name not in table.primary_key
            assert not any(old.name in index.columns for index in table.indexes)
            assert not any(old.name in _columns(table, rule) for rule in table.constraints)
            update: dict[str, Any] = {"type": type, "default": converted_default(old, type)}
            assert update["default"] is None or isinstance(update["default"], str | int)
        case changes.SetDefault(default=default):
            update = {"default": default}
        case changes.SetNullable(nullable=nullable):
            update = {"nullable": nullable}
        case _:
            raise AssertionError(operation)
    new = old.model_copy(update=update)
    columns = tuple(new if column is old else column for column in table.columns)
    return table.model_copy(update={"columns": columns})
