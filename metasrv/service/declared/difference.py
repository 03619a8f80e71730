"""The difference of the catalog as it is and as it is declared: operations in order. Pure.

Both are `DesiredState`s. What `current` holds beyond what `desired` names does not count, but for
the tables of schemas that it names, if they are to be pruned, and for the elements of tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from metasrv.service.declared.matching import Matched, matched
from metasrv.service.declared.operations import DeclaredName, DeclaredPlan, ObjectName
from metasrv.service.declared.placing_difference import placement_operations, space_operations
from metasrv.service.declared.table_difference import TablePair, set_options, table_operations
from metasrv_base.wire.api import batches
from metasrv_base.wire.api.tables import CatalogSpec, ColumnSpec, SchemaSpec, TableShape, TableSpec
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings
from metasrv_base.wire.language import apply
from metasrv_base.wire.language.declared import (
    DeclaredCatalog,
    DeclaredSchema,
    DeclaredTable,
    DeclaredTablespace,
    DesiredState,
)
from metasrv_base.wire.model import WireModel

DEFAULT_SCHEMA = "public"
DEFAULT_TABLESPACE = "default"
NO_ROWS = "its rows are deleted once its retention is over"


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema as it is and as it is declared."""

    catalog: str
    current: DeclaredSchema
    desired: DeclaredSchema
    pointer: str
    tables: Matched


def difference(
    current: DesiredState, desired: DesiredState, *, prune: bool = False
) -> DeclaredPlan:
    """The operations, each of which can be done when those before it are. Done in order they make
    the catalog as declared. *current*: as `declared_state` gives it; *desired*: without errors of
    `declared_errors`."""
    plan = DeclaredPlan()
    placing = placement_operations(current, desired, plan)
    catalogs = list(_catalogs(current, desired, plan))
    spaces = [
        space_operations(there, declared, f"/catalogs/{number}", plan)
        for number, (there, declared) in enumerate(catalogs)
    ]
    schemas = [
        schema
        for number, (there, declared) in enumerate(catalogs)
        for schema in _schemas(there, declared, f"/catalogs/{number}", plan)
    ]
    names = {declared.name: spaces[number] for number, (_, declared) in enumerate(catalogs)}
    for schema in schemas:
        _rename_tables(schema, plan)
    pairs = [
        placing.of(pair, names[schema.catalog])
        for schema in schemas
        for pair in _pairs(schema, plan)
    ]
    for pair in pairs:
        set_options(pair, plan)
    for pair in pairs:
        table_operations(pair, plan)
    for schema in schemas if prune else ():
        _prune(schema, plan)
    return plan


def _catalogs(
    current: DesiredState, desired: DesiredState, plan: DeclaredPlan
) -> Iterator[tuple[DeclaredCatalog, DeclaredCatalog]]:
    """Yields each declared catalog with the one that is there; one that is made has what every
    catalog begins with."""
    there = {each.name: each for each in current.catalogs}
    for number, declared in enumerate(desired.catalogs):
        now = there.get(declared.name)
        if now is None:
            spec = CatalogSpec(
                name=declared.name,
                options=declared.options or {},
                settings=declared.settings or TenantSettings(),
                limits=declared.limits or TenantLimits(),
            )
            create = batches.CreatesCatalog(create_catalog=spec)
            plan.add(ObjectName("catalog", declared.name), create, "create catalog")
            now = declared.model_copy(
                update={
                    "tablespaces": (DeclaredTablespace(name=DEFAULT_TABLESPACE),),
                    "schemas": (DeclaredSchema(name=DEFAULT_SCHEMA, options={}),),
                }
            )
        else:
            _alter_catalog(now, declared, f"/catalogs/{number}", plan)
        yield now, declared


def _alter_catalog(
    now: DeclaredCatalog, declared: DeclaredCatalog, pointer: str, plan: DeclaredPlan
) -> None:
    if declared.options is not None and declared.options != now.options:
        plan.refuse(f"{pointer}/options", "no operation changes the options of a catalog")
    settings = _changed(now.settings, declared.settings)
    limits = _changed(now.limits, declared.limits)
    if settings or limits:
        patch = apply.CatalogToAlter.model_validate(
            {"catalog": declared.name, "settings": settings, "limits": limits}
        )
        words = ", ".join(f"{name}={value}" for name, value in {**settings, **limits}.items())
        command = apply.AltersCatalog(alter_catalog=patch)
        plan.add(ObjectName("catalog", declared.name), command, f"set {words}")


def _changed(now: WireModel | None, declared: WireModel | None) -> dict[str, object]:
    """The fields that the declaration names, and that differ."""
    if declared is None:
        return {}
    was = {} if now is None else now.model_dump(mode="json")
    fields = declared.model_dump(mode="json", include=declared.model_fields_set)
    return {name: value for name, value in fields.items() if was.get(name) != value}


def _schemas(
    now: DeclaredCatalog, declared: DeclaredCatalog, pointer: str, plan: DeclaredPlan
) -> Iterator[_Schema]:
    there = {each.name: each for each in now.schemas}
    for number, schema in enumerate(declared.schemas):
        here = f"{pointer}/schemas/{number}"
        current = there.get(schema.name)
        if current is None:
            spec = SchemaSpec(name=schema.name, options=schema.options or {})
            made = batches.SchemaToCreate(catalog=declared.name, schema_spec=spec)
            target = ObjectName("schema", f"{declared.name}.{schema.name}")
            plan.add(target, batches.CreatesSchema(create_schema=made), "create schema")
            current = DeclaredSchema(name=schema.name, options=schema.options)
        elif schema.options is not None and schema.options != current.options:
            plan.refuse(f"{here}/options", "no operation changes the options of a schema")
        tables = matched({table.name: None for table in current.tables}, schema.tables)
        for position, reason in tables.faults:
            plan.refuse(f"{here}/tables/{position}/renamed_from", reason)
        yield _Schema(declared.name, current, schema, here, tables)


def _rename_tables(schema: _Schema, plan: DeclaredPlan) -> None:
    for now, new in schema.tables.renames.items():
        rename = batches.TableToRename(
            catalog=schema.catalog, schema_name=schema.desired.name, table=now, new_name=new
        )
        target = DeclaredName(schema.catalog, schema.desired.name, new).object
        plan.add(target, batches.RenamesTable(rename_table=rename), f"rename from {now}")


def _pairs(schema: _Schema, plan: DeclaredPlan) -> Iterator[TablePair]:
    """Yields each declared table with the one that is there; one that is made has no indexes and
    constraints yet."""
    there = {table.name: table for table in schema.current.tables}
    for number, table in enumerate(schema.desired.tables):
        name = DeclaredName(schema.catalog, schema.desired.name, table.name)
        pointer = f"{schema.pointer}/tables/{number}"
        now = schema.tables.current.get(table.name)
        if now is not None:
            yield TablePair(name, there[now], table, pointer)
            continue
        made = batches.TableToMake(
            catalog=name.catalog, schema_name=name.schema, table=table_spec(table)
        )
        columns = f"create table ({len(table.columns)} columns)"
        plan.add(name.object, batches.CreatesTable(create_table=made), columns)
        bare = table.model_copy(update={"indexes": (), "constraints": ()})
        yield TablePair(name, bare, table, pointer, is_new=True)


def table_spec(table: DeclaredTable) -> TableSpec:
    shape = {field: getattr(table, field) for field in TableShape.model_fields}
    columns = (
        ColumnSpec(name=each.name, type=each.type, nullable=each.nullable, default=each.default)
        for each in table.columns
    )
    return TableSpec(**shape, columns=tuple(columns))


def _prune(schema: _Schema, plan: DeclaredPlan) -> None:
    for table in schema.current.tables:
        if table.name not in schema.tables.taken:
            drop = batches.TableToDrop(
                catalog=schema.catalog, schema_name=schema.desired.name, table=table.name
            )
            target = DeclaredName(schema.catalog, schema.desired.name, table.name).object
            plan.add(target, batches.DropsTable(drop_table=drop), "drop table", NO_ROWS)
