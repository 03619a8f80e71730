"""Faults of a desired state that need no catalog: all of them, with their pointers. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from metasrv.service.declared.difference import table_spec
from metasrv_base.errors import Refused
from metasrv_base.expressions.check import asked
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.api.placing.placement_rules import validate_placement, validate_tablespace
from metasrv_base.wire.api.placing.placements import PlacementShape, PlacementSpec, TablespaceSpec
from metasrv_base.wire.api.table_rules import (
    index_errors,
    name_errors,
    validate_schema,
    validate_spec,
)
from metasrv_base.wire.api.tables import HashPartition, IndexSpec, SchemaSpec
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings, tenant_errors
from metasrv_base.wire.language.declared import (
    OBJECTS_MAX,
    DeclaredCatalog,
    DeclaredConstraint,
    DeclaredIndex,
    DeclaredPlacement,
    DeclaredSchema,
    DeclaredTable,
    DesiredState,
)
from metasrv_base.wire.problem.problems import ERRORS_MAX, FieldError


def must_be_right(desired: DesiredState) -> None:
    """Raises Refused with the first faults."""
    errors: list[FieldError] = []
    for error in declared_errors(desired):
        errors.append(error)
        if len(errors) == ERRORS_MAX:
            break
    if errors:
        raise Refused(errors[0].code, errors=tuple(errors))


def declared_errors(desired: DesiredState) -> Iterator[FieldError]:
    if (count := objects_of(desired)) > OBJECTS_MAX:
        yield FieldError(pointer="", detail=f"at most {OBJECTS_MAX} objects, not {count}")
        return
    yield from _twice([each.name for each in desired.placements], "/placements")
    for number, placement in enumerate(desired.placements):
        yield from _at(f"/placements/{number}", _placement_errors(placement))
    yield from _twice([each.name for each in desired.catalogs], "/catalogs")
    for number, catalog in enumerate(desired.catalogs):
        yield from _at(f"/catalogs/{number}", _catalog_errors(catalog))


def objects_of(desired: DesiredState) -> int:
    schemas = [schema for catalog in desired.catalogs for schema in catalog.schemas]
    spaces = sum(len(catalog.tablespaces) for catalog in desired.catalogs)
    tables = sum(len(schema.tables) for schema in schemas)
    return len(desired.placements) + len(desired.catalogs) + spaces + len(schemas) + tables


def _at(pointer: str, errors: Iterable[FieldError]) -> Iterator[FieldError]:
    for error in errors:
        yield error.model_copy(update={"pointer": f"{pointer}{error.pointer}"})


def _twice(names: Sequence[str], pointer: str) -> Iterator[FieldError]:
    there: dict[str, int] = {}
    for number, name in enumerate(names):
        first = there.setdefault(name, number)
        if first != number:
            detail = f"{name} is declared twice, first as {pointer}/{first}"
            yield FieldError(pointer=f"{pointer}/{number}/name", detail=detail)


def _placement_errors(placement: DeclaredPlacement) -> Iterator[FieldError]:
    shape = {field: getattr(placement, field) for field in PlacementShape.model_fields}
    yield from validate_placement(PlacementSpec(**shape))


def _catalog_errors(catalog: DeclaredCatalog) -> Iterator[FieldError]:
    spec = SchemaSpec(name=catalog.name, options=catalog.options or {})
    yield from validate_schema(spec)
    settings = catalog.settings or TenantSettings()
    yield from tenant_errors(settings, catalog.limits or TenantLimits())
    yield from _twice([each.name for each in catalog.tablespaces], "/tablespaces")
    for number, space in enumerate(catalog.tablespaces):
        errors = validate_tablespace(TablespaceSpec(name=space.name, comment=space.comment))
        yield from _at(f"/tablespaces/{number}", errors)
    yield from _twice([each.name for each in catalog.schemas], "/schemas")
    for number, schema in enumerate(catalog.schemas):
        yield from _at(f"/schemas/{number}", _schema_errors(schema))


def _schema_errors(schema: DeclaredSchema) -> Iterator[FieldError]:
    yield from validate_schema(SchemaSpec(name=schema.name, options=schema.options or {}))
    yield from _twice([each.name for each in schema.tables], "/tables")
    for number, table in enumerate(schema.tables):
        yield from _at(f"/tables/{number}", table_errors(table))


def table_errors(table: DeclaredTable) -> Iterator[FieldError]:
    faults = validate_spec(table_spec(table))
    yield from faults
    if faults:
        return
    names = {column.name for column in table.columns}
    yield from _twice([each.name for each in table.indexes], "/indexes")
    for number, index in enumerate(table.indexes):
        spec = IndexSpec(
            name=index.name, columns=index.columns, unique=index.unique, not_valid=index.not_valid
        )
        yield from _at(f"/indexes/{number}", index_errors(spec))
        if index.unique and not _is_in_one_region(table, index):
            columns = ", ".join(table.partition.columns if table.partition else ())
            yield FieldError(
                pointer=f"/indexes/{number}/columns",
                code="unique-needs-partition-columns",
                detail=f"a unique index contains the partition columns ({columns})",
            )
        for position, column in enumerate(index.columns):
            if column not in names:
                pointer = f"/indexes/{number}/columns/{position}"
                yield FieldError(pointer=pointer, detail="no column has that name")
    yield from _twice([each.name for each in table.constraints], "/constraints")
    for number, constraint in enumerate(table.constraints):
        yield from _at(f"/constraints/{number}", _constraint_errors(table, constraint))


def _is_in_one_region(table: DeclaredTable, index: DeclaredIndex) -> bool:
    """Whether rows with the same values of the index are in one region."""
    partition = table.partition
    if partition is None or (isinstance(partition, HashPartition) and partition.count == 1):
        return True  # with partitions of its placement, the index itself is refused
    return set(partition.columns) <= set(index.columns)


def _constraint_errors(
    table: DeclaredTable, constraint: DeclaredConstraint
) -> Iterator[FieldError]:
    yield from name_errors(constraint.name, "/name")
    if (constraint.check is None) == (constraint.not_null is None):
        yield FieldError(pointer="", detail="one of check and not_null")
        return
    if constraint.not_null is not None:
        yield from _not_null_errors(table, constraint)
        return
    assert constraint.check is not None
    ids = {column.name: number for number, column in enumerate(table.columns)}
    types = {number: parse_type(column.type) for number, column in enumerate(table.columns)}
    try:
        asked(constraint.check, ids, types, "/check")
    except Refused as error:
        facts = error.facts
        actual = f", found {facts['found']}" if "found" in facts else ""
        detail = f"expected {facts.get('expected')}{actual}"
        yield FieldError(pointer=str(facts.get("pointer", "/check")), detail=detail)


def _not_null_errors(table: DeclaredTable, constraint: DeclaredConstraint) -> Iterator[FieldError]:
    column = next((each for each in table.columns if each.name == constraint.not_null), None)
    if column is None:
        yield FieldError(pointer="/not_null", detail="no column has that name")
    elif not column.nullable:
        yield FieldError(pointer="/not_null", detail="the column says nullable false already")
    elif not constraint.not_valid:
        detail = "say not_valid, or let the column say nullable false"
        yield FieldError(pointer="/not_null", detail=detail)
