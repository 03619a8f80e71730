"""Validation of specs without knowledge of the cluster: pure; every fault at once, with its
pointer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from pydantic import JsonValue

from metasrv_base.errors import Refused
from metasrv_base.ids import is_identifier
from metasrv_base.schema.instants import instant_text
from metasrv_base.schema.partition import HashRule, PartitionRule, RangeRule, encode_bounds
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import PER_SECOND, ColumnType, parse_type
from metasrv_base.schema.values import from_json, to_json
from metasrv_base.wire.api.changes import (
    AddColumn,
    AddConstraint,
    AlterOperation,
    AlterRequest,
    AlterType,
    DropColumn,
    DropConstraint,
    RenameColumn,
    RenameRequest,
    SetCopies,
    SetDefault,
    SetNullable,
    SetOptions,
    UndropRequest,
    ValidateConstraint,
)
from metasrv_base.wire.api.tables import (
    DEFAULT_NUMBER,
    REPLICAS_MAX,
    CatalogSpec,
    ColumnSpec,
    HashPartition,
    IndexSpec,
    NumberOfCopies,
    RangePartition,
    SchemaSpec,
    TableSpec,
)
from metasrv_base.wire.problem.problems import FieldError

NOW: JsonValue = {"expression": "now()"}
OPTIONS_MAX = 64
OPTION_VALUE_CHARS_MAX = 1024
COMMENT = "comment"
"""The one option that the product knows: text that is shown with the table, schema or catalog."""
OPTIONS_TAKEN = (
    f"nothing acts upon it; `{COMMENT}` is taken, and names with a dot, as `app.owner`, which are"
    " kept and shown for clients"
)
RESERVED = frozenset({"information_schema"})
_OPTION_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def validate_spec(spec: TableSpec) -> tuple[FieldError, ...]:
    """Returns all errors of a table to create; empty: it is valid. Needs no catalog."""
    types = _types(spec.columns)
    return (
        *name_errors(spec.name, "/name"),
        *_column_errors(spec.columns, types),
        *_key_errors(spec),
        *_partition_errors(spec, types),
        *_option_errors(spec.options),
        *_colocation_errors(spec),
        *_placing_errors(spec),
    )


def validate_schema(spec: SchemaSpec | CatalogSpec) -> tuple[FieldError, ...]:
    return (*name_errors(spec.name, "/name"), *_option_errors(spec.options))


def validate_rename(request: RenameRequest) -> tuple[FieldError, ...]:
    schema = request.new_schema
    return (
        *name_errors(request.new_name, "/new_name"),
        *(name_errors(schema, "/new_schema") if schema is not None else ()),
    )


def validate_undrop(request: UndropRequest) -> tuple[FieldError, ...]:
    return name_errors(request.new_name, "/new_name") if request.new_name is not None else ()


def validate_alter(request: AlterRequest) -> tuple[FieldError, ...]:
    """Returns the errors that do not depend on the table."""
    return tuple(
        error
        for position, operation in enumerate(request.operations)
        for error in _operation_errors(operation, f"/operations/{position}")
    )


def index_errors(spec: IndexSpec) -> tuple[FieldError, ...]:
    """Returns the errors that do not depend on the table."""
    repeated = [
        _wrong(f"/columns/{position}", "the index names it twice")
        for position, name in enumerate(spec.columns)
        if name in spec.columns[:position]
    ]
    pointless = spec.not_valid and not spec.unique
    why = "only a unique index can be left not valid"
    wrong = [_wrong("/not_valid", why)] if pointless else []
    return (*name_errors(spec.name, "/name"), *repeated, *wrong)


def name_errors(name: str, pointer: str) -> tuple[FieldError, ...]:
    """Whether `name` may name a table, a schema, a catalog or a column."""
    if not is_identifier(name):
        detail = "a name is a letter or _, then letters, digits, _ and -, at most 128 in all"
        return (FieldError(pointer=pointer, code="invalid-identifier", detail=detail),)
    if name.startswith("__") or name.lower() in RESERVED:
        detail = "names that begin with __, and information_schema, are reserved"
        return (FieldError(pointer=pointer, code="reserved-name", detail=detail),)
    return ()


def rule_of(
    partition: HashPartition | RangePartition | None,
    primary_key: Sequence[str],
    column_ids: Mapping[str, int],
) -> PartitionRule:
    """The rule that a valid spec means, over column ids. None: one region over the whole key."""
    if partition is None:
        return HashRule(columns=tuple(column_ids[name] for name in primary_key), count=1)
    columns = tuple(column_ids[name] for name in partition.columns)
    if isinstance(partition, HashPartition):
        return HashRule(columns=columns, count=partition.count)
    return RangeRule(columns=columns, bounds=partition.bounds)


def partition_of(rule: PartitionRule, names: Mapping[int, str]) -> HashPartition | RangePartition:
    """A stored rule as the wire shows it; the inverse of `rule_of`."""
    columns = tuple(names[column] for column in rule.columns)
    if isinstance(rule, HashRule):
        return HashPartition(by="hash", columns=columns, count=rule.count)
    return RangePartition(by="range", columns=columns, bounds=rule.bounds)


def _types(columns: Sequence[ColumnSpec]) -> dict[str, ColumnType]:
    """The types that parse, by column name; of a repeated name the first."""
    types: dict[str, ColumnType] = {}
    for column in columns:
        try:
            types.setdefault(column.name, parse_type(column.type))
        except Refused:
            continue  # reported with its pointer by _column_errors
    return types


def _column_errors(
    columns: Sequence[ColumnSpec], types: Mapping[str, ColumnType]
) -> Iterator[FieldError]:
    names: set[str] = set()
    for position, column in enumerate(columns):
        here = f"/columns/{position}"
        yield from name_errors(column.name, f"{here}/name")
        if column.name.lower() in names:
            yield _wrong(f"{here}/name", "a column before it has that name; case does not count")
        names.add(column.name.lower())
        try:
            type = parse_type(column.type, f"{here}/type")
            if column.default is not None:
                from_json(type, column.default, f"{here}/default")
        except Refused as error:
            yield _field_error(error)


def _key_errors(spec: TableSpec) -> Iterator[FieldError]:
    columns = {column.name: column for column in spec.columns}
    for position, name in enumerate(spec.primary_key):
        here = f"/primary_key/{position}"
        if name not in columns:
            yield _wrong(here, "no column has that name")
        elif columns[name].nullable:
            yield _wrong(here, "a column of the primary key must have nullable false")
        if name in spec.primary_key[:position]:
            yield _wrong(here, "the primary key names it twice")


def _partition_errors(spec: TableSpec, types: Mapping[str, ColumnType]) -> Iterator[FieldError]:
    partition = spec.partition
    if partition is None:
        return
    for position, name in enumerate(partition.columns):
        here = f"/partition/columns/{position}"
        if name not in spec.primary_key:
            yield _wrong(here, "partition columns are among the primary key's")
        if name in partition.columns[:position]:
            yield _wrong(here, "the partition names it twice")
    column_types = [types[name] for name in partition.columns if name in types]
    if isinstance(partition, RangePartition) and len(column_types) == len(partition.columns):
        try:
            encode_bounds(column_types, partition.bounds, "/partition")
        except Refused as error:
            yield _field_error(error)


def _option_errors(options: Mapping[str, str | None], pointer: str = "") -> Iterator[FieldError]:
    here = f"{pointer}/options"
    if len(options) > OPTIONS_MAX:
        yield _wrong(here, f"at most {OPTIONS_MAX} options")
    for name, value in list(options.items())[:OPTIONS_MAX]:
        if not _OPTION_NAME.fullmatch(name):
            yield _wrong(here, "an option is a small letter, then small letters, digits, _ . -")
        elif value is not None and not _is_option(name):
            yield _unsupported(f"{here}/{name}", OPTIONS_TAKEN)
        elif value is not None and len(value) > OPTION_VALUE_CHARS_MAX:
            yield _wrong(f"{here}/{name}", f"at most {OPTION_VALUE_CHARS_MAX} characters")


def _is_option(name: str) -> bool:
    """Whether anything is done with it, or it is a client's own by its name."""
    return name == COMMENT or "." in name.strip(".")


def _colocation_errors(spec: TableSpec) -> Iterator[FieldError]:
    together = spec.colocation_columns
    if together is None:
        return
    for position, name in enumerate(together):
        here = f"/colocation_columns/{position}"
        if name not in spec.primary_key:
            yield _wrong(here, "colocation columns are among the primary key's")
        if name in together[:position]:
            yield _wrong(here, "the colocation columns name it twice")
    for position, name in enumerate(spec.partition.columns if spec.partition else ()):
        if name not in together:
            what = "partition columns are among the colocation columns, if there are any"
            yield _wrong(f"/partition/columns/{position}", what)


def _placing_errors(spec: TableSpec) -> Iterator[FieldError]:
    yield from copies_errors(spec.replicas, spec.min_in_sync)
    for field in ("placement", "storage_profile", "tablespace"):
        name = getattr(spec, field)
        if name is not None and not is_identifier(name):
            yield from name_errors(name, f"/{field}")


def copies_errors(
    replicas: int | None, min_in_sync: int | None, here: str = ""
) -> Iterator[FieldError]:
    """Numbers of copies that no table or placement can have."""
    if replicas is not None and replicas > REPLICAS_MAX:
        yield _wrong(f"{here}/replicas", f"a region has at most {REPLICAS_MAX} copies")
    elif min_in_sync is not None and min_in_sync > (replicas or REPLICAS_MAX):
        limit = "as there are copies" if replicas is None else f"as its {replicas} copies"
        yield _wrong(f"{here}/min_in_sync", f"at most as many must be in sync {limit}")


def number_of(number: NumberOfCopies | None) -> int | None:
    """None also for the default."""
    return None if number == DEFAULT_NUMBER else number


def _set_copies_errors(operation: SetCopies, here: str) -> Iterator[FieldError]:
    yield from copies_errors(number_of(operation.replicas), number_of(operation.min_in_sync), here)
    if operation.replicas is None and operation.min_in_sync is None:
        yield _wrong(here, "replicas, min_in_sync or both")


def _operation_errors(operation: AlterOperation, here: str) -> Iterator[FieldError]:
    match operation:
        case SetOptions():
            yield from _option_errors(operation.options, here)
        case SetCopies():
            yield from _set_copies_errors(operation, here)
        case RenameColumn():
            yield from name_errors(operation.name, f"{here}/name")
            yield from name_errors(operation.new_name, f"{here}/new_name")
        case AddColumn():
            yield from _add_column_errors(operation, here)
        case DropColumn() | SetDefault():
            yield from name_errors(operation.name, f"{here}/name")
        case SetNullable() | ValidateConstraint() | DropConstraint():
            yield from name_errors(operation.name, f"{here}/name")
        case AddConstraint():
            yield from _add_constraint_errors(operation, here)
        case AlterType():
            yield from name_errors(operation.name, f"{here}/name")
            yield from _type_errors(operation.type, f"{here}/type")
        case _:
            assert_never(operation)


def _type_errors(type: str, here: str) -> Iterator[FieldError]:
    try:
        parse_type(type, here)
    except Refused as error:
        yield _field_error(error)


def _add_constraint_errors(operation: AddConstraint, here: str) -> Iterator[FieldError]:
    yield from name_errors(operation.name, f"{here}/name")
    conditions = [operation.check, operation.unique, operation.not_null]
    if conditions.count(None) != len(conditions) - 1:
        yield _wrong(here, "one of check, unique and not_null")
    elif operation.unique is not None:
        yield _unsupported(f"{here}/unique", "it is not built yet; make a unique index")
    elif operation.not_null is not None:
        yield from name_errors(operation.not_null, f"{here}/not_null")


def _add_column_errors(operation: AddColumn, here: str) -> Iterator[FieldError]:
    column = operation.column
    yield from name_errors(column.name, f"{here}/column/name")
    if operation.after is not None:
        yield from name_errors(operation.after, f"{here}/after")
    try:
        type = parse_type(column.type, f"{here}/column/type")
        evaluated(type, column.default, 0, f"{here}/column/default")
    except Refused as error:
        yield _field_error(error)
    if not column.nullable and column.default is None:
        what = "a column that is not nullable needs a value for the rows there are"
        yield _wrong(f"{here}/column/default", what)


def evaluated(type: ColumnType, default: JsonValue, now_ms: int, pointer: str) -> JsonScalar | None:
    """A default as it is stored; of an expression, its value now (wall clock). Raises Refused."""
    if default is None:
        return None
    if default == NOW and type.name == "timestamp":
        return instant_text(now_ms * PER_SECOND[type.unit] // PER_SECOND["ms"], type.unit)
    if default == NOW and type.name == "date":
        return instant_text(now_ms, "ms")[:10]
    if default == NOW:
        expected = "a timestamp or a date"
        raise Refused("invalid-request", pointer=pointer, found=type.text, expected=expected)
    return to_json(type, from_json(type, default, pointer))


def _wrong(pointer: str, detail: str) -> FieldError:
    return FieldError(pointer=pointer, detail=detail)


def _unsupported(pointer: str, detail: str) -> FieldError:
    return FieldError(pointer=pointer, code="unsupported", detail=detail)


def _field_error(error: Refused) -> FieldError:
    """A refusal of metasrv_base/schema as an entry of `errors`."""
    facts = error.facts
    actual = f", found {facts['found']}" if "found" in facts else ""
    return FieldError(
        pointer=str(facts.get("pointer", "")),
        code=error.code,
        detail=f"expected {facts['expected']}{actual}",
    )
