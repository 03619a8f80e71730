"""Statements of SQL that declare objects, as a part of a desired state. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from metasrv.service.apply.sql_renames import note_rename
from metasrv_base.errors import MetaError, Refused
from metasrv_base.sql import commands as sql
from metasrv_base.sql.faults import excerpt, fault_at, position
from metasrv_base.sql.grammar.statements import Statement, statements
from metasrv_base.wire.api import changes
from metasrv_base.wire.api.placing.placements import PlacementPatch, PlacementShape
from metasrv_base.wire.api.tables import ColumnSpec, TableShape
from metasrv_base.wire.language.apply import SqlFile
from metasrv_base.wire.language.declared import DesiredState
from metasrv_base.wire.problem.problems import FieldError

DECLARES = (
    "CREATE TABLE, INDEX, SCHEMA, CATALOG, PLACEMENT or TABLESPACE, COMMENT ON, or ALTER TABLE "
    "that adds a constraint, sets options or renames: a file says what there is to be"
)


@dataclass(frozen=True, slots=True)
class SqlPlace:
    """A statement that declares something, and the pointer into its body that is meant."""

    number: int
    """Number of the file in the request, from 0."""
    file: SqlFile
    statement: Statement
    inside: str = ""

    def place_of(self, pointer: str) -> int:
        return self.statement.place_of(f"{self.inside}{pointer}")


@dataclass(slots=True)
class DesiredParts:
    """A desired state that is being put together, as JSON, with the statements that say it."""

    document: dict[str, Any]
    places: dict[str, SqlPlace] = field(default_factory=dict)
    """JSON pointer into the document -> its statement."""

    @classmethod
    def of(cls, desired: DesiredState) -> "DesiredParts":
        document = desired.model_dump(by_alias=True, exclude_unset=True)
        return cls(document)

    def catalog(self, name: str) -> tuple[dict[str, Any], str]:
        return _entry(self.document, "catalogs", name, "")

    def schema(self, catalog: str, name: str) -> tuple[dict[str, Any], str]:
        parent, pointer = self.catalog(catalog)
        return _entry(parent, "schemas", name, pointer)

    def add(
        self, parent: dict[str, Any], pointer: str, member: str, value: Any, declaring: SqlPlace
    ) -> None:
        """Adds an item to a list of *parent*."""
        items = _list(parent, member)
        self.places[f"{pointer}/{member}/{len(items)}"] = declaring
        items.append(value)


def _list(parent: dict[str, Any], member: str) -> list[Any]:
    items = list(parent.get(member, ()))
    parent[member] = items
    return items


def _entry(
    parent: dict[str, Any], member: str, name: str, pointer: str
) -> tuple[dict[str, Any], str]:
    items = _list(parent, member)
    for number, item in enumerate(items):
        if item["name"] == name:
            return item, f"{pointer}/{member}/{number}"
    items.append({"name": name})
    return items[-1], f"{pointer}/{member}/{len(items) - 1}"


@dataclass(frozen=True, slots=True)
class SqlDesired:
    desired: DesiredState
    places: Mapping[str, SqlPlace]


def with_sql(desired: DesiredState, files: tuple[SqlFile, ...]) -> SqlDesired:
    """The desired state with what the statements of *files* declare. Raises Refused `invalid-sql`
    for a statement that declares nothing."""
    if not files:
        return SqlDesired(desired, {})
    parts = DesiredParts.of(desired)
    later: list[SqlPlace] = []
    for number, file in enumerate(files):
        for statement in _statements(file):
            declaring = SqlPlace(number, file, statement)
            if not _declares_object(parts, declaring):
                later.append(declaring)
    for declaring in later:
        _declare_part(parts, declaring)
    return SqlDesired(DesiredState.model_validate(parts.document), parts.places)


def _statements(file: SqlFile) -> Iterator[Statement]:
    try:
        yield from statements(file.text, lambda table, column: None)
    except Refused as error:
        raise Refused(error.code, **{**error.facts, "file": file.name}) from error


def _declares_object(parts: DesiredParts, declaring: SqlPlace) -> bool:
    """Adds the object that a statement makes. False: it is about a part of another object."""
    file, command = declaring.file, declaring.statement.command
    match command:
        case sql.CreateTableStatement(table=table, spec=spec):
            schema, pointer = parts.schema(*_schema_of(file, table))
            shape = {name: getattr(spec, name) for name in TableShape.model_fields}
            columns = [
                {name: getattr(each, name) for name in ColumnSpec.model_fields}
                for each in spec.columns
            ]
            parts.add(schema, pointer, "tables", _json({**shape, "columns": columns}), declaring)
        case sql.CreateSchemaStatement(catalog=catalog, spec=spec):
            schema, pointer = parts.schema(catalog or file.catalog, spec.name)
            schema["options"] = spec.options
            parts.places[pointer] = declaring
        case sql.CreateCatalogStatement(spec=spec):
            entry, pointer = parts.catalog(spec.name)
            entry["options"] = spec.options
            parts.places[pointer] = declaring
        case sql.CreatePlacementStatement(spec=spec):
            shape = {name: getattr(spec, name) for name in PlacementShape.model_fields}
            parts.add(parts.document, "", "placements", _json(shape), declaring)
        case sql.CreateTablespaceStatement(catalog=catalog, spec=spec):
            entry, pointer = parts.catalog(catalog or file.catalog)
            space = {"name": spec.name, "comment": spec.comment}
            parts.add(entry, pointer, "tablespaces", space, declaring)
        case _:
            return False
    return True


def _json(shape: dict[str, Any]) -> dict[str, Any]:
    return {name: _json_of(value) for name, value in shape.items()}


def _json_of(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_json_of(each) for each in value]
    return value.model_dump(by_alias=True) if hasattr(value, "model_dump") else value


def _schema_of(file: SqlFile, table: sql.QualifiedTable) -> tuple[str, str]:
    return table.catalog or file.catalog, table.schema or file.schema_name


def _declare_part(parts: DesiredParts, declaring: SqlPlace) -> None:
    """Adds an index, a constraint, options or a comment to the object that has it."""
    file, command = declaring.file, declaring.statement.command
    match command:
        case sql.CreateIndexStatement(table=named, spec=spec):
            table, pointer = _table(parts, declaring, named)
            index = spec.model_dump(exclude={"if_not_exists"})
            parts.add(table, pointer, "indexes", index, declaring)
        case sql.AlterTableStatement(table=named, request=request):
            table, pointer = _table(parts, declaring, named)
            for number, operation in enumerate(request.operations):
                here = SqlPlace(
                    declaring.number, file, declaring.statement, f"/operations/{number}"
                )
                _declare_operation(parts, here, table, pointer, operation)
        case sql.RenameTableStatement():
            _declare_renamed_table(parts, declaring, command)
        case sql.RenamePlacementStatement(placement=name, new_name=new_name):
            objects = _list(parts.document, "placements")
            _must_note(declaring, note_rename(objects, name, new_name, "placement"))
        case sql.RenameTablespaceStatement(tablespace=space, new_name=new_name):
            catalog, _ = parts.catalog(space.catalog or file.catalog)
            objects = _list(catalog, "tablespaces")
            _must_note(declaring, note_rename(objects, space.name, new_name, "tablespace"))
        case sql.AlterPlacementStatement(placement=name, patch=patch) if _is_comment(patch):
            _commented(declaring, parts.document.get("placements", ()), name, patch.comment)
        case sql.AlterTablespaceStatement(tablespace=space, patch=patch):
            catalog, _ = parts.catalog(space.catalog or file.catalog)
            _commented(declaring, catalog.get("tablespaces", ()), space.name, patch.comment)
        case _:
            raise _refused(declaring, "", DECLARES)


def _is_comment(patch: PlacementPatch) -> bool:
    return patch.model_fields_set == {"comment"}


def _commented(declaring: SqlPlace, objects: Any, name: str, comment: str | None) -> None:
    for each in objects:
        if each["name"] == name:
            each["comment"] = comment
            return
    raise _refused(declaring, "", f"{name} to be declared too")


def _table(
    parts: DesiredParts, declaring: SqlPlace, named: sql.QualifiedTable
) -> tuple[dict[str, Any], str]:
    schema, pointer = parts.schema(*_schema_of(declaring.file, named))
    for number, table in enumerate(_list(schema, "tables")):
        if table["name"] == named.table:
            return table, f"{pointer}/tables/{number}"
    raise _refused(declaring, "/name", f"table {named.table} to be declared too")


def _declare_renamed_table(
    parts: DesiredParts, declaring: SqlPlace, command: sql.RenameTableStatement
) -> None:
    request, named = command.request, command.table
    catalog, schema_name = _schema_of(declaring.file, named)
    if request.exchange or request.new_schema not in (None, schema_name):
        raise _refused(declaring, "", "a new name in the same schema")
    schema, pointer = parts.schema(catalog, schema_name)
    tables = _list(schema, "tables")
    _must_note(declaring, note_rename(tables, named.table, request.new_name, "table"))
    number = [table["name"] for table in tables].index(request.new_name)
    parts.places[f"{pointer}/tables/{number}/renamed_from"] = declaring


def _must_note(declaring: SqlPlace, expected: str | None) -> None:
    if expected is not None:
        raise _refused(declaring, "/new_name", expected)


def _declare_operation(
    parts: DesiredParts,
    declaring: SqlPlace,
    table: dict[str, Any],
    pointer: str,
    operation: changes.AlterOperation,
) -> None:
    match operation:
        case changes.AddConstraint(unique=None):
            rule = operation.model_dump(include={"name", "check", "not_null", "not_valid"})
            parts.add(table, pointer, "constraints", rule, declaring)
        case changes.SetOptions():
            options = {**table.get("options", {}), **operation.options}
            table["options"] = {name: each for name, each in options.items() if each is not None}
        case changes.RenameColumn(name=earlier, new_name=name):
            columns = table["columns"]
            _must_note(declaring, note_rename(columns, earlier, name, "column"))
            number = [column["name"] for column in columns].index(name)
            parts.places[f"{pointer}/columns/{number}/renamed_from"] = declaring
        case _:
            raise _refused(declaring, "", DECLARES)


def _refused(declaring: SqlPlace, pointer: str, expected: str) -> Refused:
    statement = declaring.statement
    offset = declaring.place_of(pointer)
    refusal = fault_at(statement.text.source, offset, actual=statement.text.text, expected=expected)
    return Refused(refusal.code, **{**refusal.facts, "file": declaring.file.name})


def placed(error: MetaError, places: Mapping[str, SqlPlace]) -> MetaError:
    """The same error, with the places in the text of those of its faults that SQL has said."""
    faults = error.facts.get("errors")
    if not isinstance(faults, tuple) or not places:
        return error
    placed_faults: list[FieldError] = []
    first: dict[str, object] = {}
    for fault in faults:
        declaring, rest = _nearest(fault.pointer, places)
        if declaring is None:
            placed_faults.append(fault)
            continue
        source, offset = declaring.file.text, declaring.place_of(rest)
        line, column = position(source, offset)
        detail = f"line {line}, column {column}: {fault.detail}"
        placed_faults.append(
            fault.model_copy(update={"pointer": f"/sql/{declaring.number}", "detail": detail})
        )
        mark = {"line": line, "column": column, "excerpt": excerpt(source, offset)}
        first = first or {**mark, "file": declaring.file.name}
    return type(error)(error.code, **{**error.facts, **first, "errors": tuple(placed_faults)})


def _nearest(pointer: str, places: Mapping[str, SqlPlace]) -> tuple[SqlPlace | None, str]:
    """The statement that says what *pointer* points to, and the rest of the pointer."""
    above = pointer
    while above:
        if above in places:
            return places[above], pointer[len(above) :]
        above = above.rpartition("/")[0]
    return None, pointer
