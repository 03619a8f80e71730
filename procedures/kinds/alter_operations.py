"""The operations of one alter, as stored, and what they make of a table. Pure.

What regions and statements must follow are *moves* of elements; the rest are *edits*: names,
defaults and options, which are true at once, for everybody, when the moves are.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, assert_never

from pydantic import Field

from base.elements.states import ElementState
from base.errors import Conflict, NotFound, Refused
from base.schema.types import parse_type
from base.schema.values import from_json
from base.wire.tables import COLUMNS_MAX, INDEXES_MAX
from keys.tables import Column, Constraint, ConstraintKind, Index, TableInfo
from keys.value import StoredPart
from procedures.moves import Move, What


class SetOptions(StoredPart):
    """None removes."""

    op: Literal["set_options"] = "set_options"
    options: dict[str, str | None]


class RenameColumn(StoredPart):
    """Its id and its rows stay."""

    op: Literal["rename_column"] = "rename_column"
    name: str
    new_name: str


class AddColumn(StoredPart):
    """Rows there are read as `default`, and so do rows that do not name it."""

    op: Literal["add_column"] = "add_column"
    name: str
    type: str
    nullable: bool = True
    default: Any = None
    """JSON form; None: null. An expression has been evaluated when it was asked for."""
    after: str | None = None
    """Null: behind the last one."""


class DropColumn(StoredPart):
    op: Literal["drop_column"] = "drop_column"
    name: str


class SetDefault(StoredPart):
    """Of rows that come; None: null."""

    op: Literal["set_default"] = "set_default"
    name: str
    default: Any


class DropNotNull(StoredPart):
    op: Literal["drop_not_null"] = "drop_not_null"
    name: str


class AddIndex(StoredPart):
    op: Literal["add_index"] = "add_index"
    name: str
    columns: tuple[str, ...]
    unique: bool


class DropIndex(StoredPart):
    op: Literal["drop_index"] = "drop_index"
    name: str


Edit: TypeAlias = SetOptions | RenameColumn | SetDefault
Operation = Annotated[
    SetOptions
    | RenameColumn
    | AddColumn
    | DropColumn
    | SetDefault
    | DropNotNull
    | AddIndex
    | DropIndex,
    Field(discriminator="op"),
]


class NextIds(StoredPart):
    """What the next new element of each sort is called by."""

    column: int
    index: int
    constraint: int

    @classmethod
    def of(cls, info: TableInfo) -> "NextIds":
        return cls(
            column=info.next_column_id,
            index=info.next_index_id,
            constraint=info.next_constraint_id,
        )

    def on(self, info: TableInfo) -> TableInfo:
        update = {
            "next_column_id": self.column,
            "next_index_id": self.index,
            "next_constraint_id": self.constraint,
        }
        return info.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class Draft:
    """What an alter comes to."""

    whole: TableInfo
    """The table as users will know it; only to judge the operations one after the other."""
    entered: TableInfo
    """The table as it is, with what is to come in it, still absent. Nobody stores this either."""
    moves: tuple[Move, ...] = ()


def drafted(info: TableInfo, operations: tuple[Operation, ...]) -> Draft:
    """Raises Refused or Conflict, with a pointer to the operation that cannot be."""
    draft = Draft(info, info)
    for number, operation in enumerate(operations):
        here = f"/operations/{number}"
        match operation:
            case AddColumn():
                draft = _add_column(draft, operation, here)
            case DropColumn():
                draft = _drop_column(draft, operation, here)
            case DropNotNull():
                draft = _drop_not_null(draft, operation, here)
            case AddIndex():
                draft = _add_index(draft, operation)
            case DropIndex():
                draft = _drop_index(draft, operation)
            case _:
                _may_be_edited(draft, operation, here)
                draft = replace(draft, whole=_edited(draft.whole, operation, here))
    return draft


def edited(info: TableInfo, operations: tuple[Operation, ...]) -> TableInfo:
    """The table with the edits among *operations*."""
    for number, operation in enumerate(operations):
        if isinstance(operation, Edit):
            info = _edited(info, operation, f"/operations/{number}")
    return info


def _add_column(draft: Draft, operation: AddColumn, here: str) -> Draft:
    names = [column.name for column in draft.entered.columns]
    names += [column.name for column in draft.whole.columns]
    _must_be_free(operation.name, names, f"{here}/column/name")
    if len(draft.entered.columns) == COLUMNS_MAX:
        raise _wrong(here, f"a table has at most {COLUMNS_MAX} columns")
    after = None
    if operation.after is not None:
        after = _column(draft.whole, operation.after, f"{here}/after").id
    new = Column(
        id=draft.entered.next_column_id,
        name=operation.name,
        type=operation.type,
        nullable=operation.nullable,
        default=operation.default,
        origin_default=operation.default,
        state=ElementState.ABSENT,
    )
    move = Move(what=What.COLUMN, id=new.id, to=ElementState.PUBLIC)
    public = new.model_copy(update={"state": ElementState.PUBLIC})
    return Draft(
        whole=_with_column(draft.whole, public, after),
        entered=_with_column(draft.entered, new, after),
        moves=(*draft.moves, move),
    )


def _drop_column(draft: Draft, operation: DropColumn, here: str) -> Draft:
    column = _settled_column(draft, operation.name, f"{here}/name")
    entered = draft.entered
    if column.id in entered.primary_key:
        raise _wrong(f"{here}/name", f"column {column.name} is part of the primary key")
    for held in entered.constraints:
        if column.id in held.columns:
            raise _wrong(f"{here}/name", f"{held.name} is over column {column.name}; drop it first")
    has_nothing = column.default is None and column.origin_default is None
    move = Move(
        what=What.COLUMN,
        id=column.id,
        to=ElementState.ABSENT,
        generated=has_nothing and not column.nullable,
    )
    over = [index for index in draft.whole.indexes if column.id in index.columns]
    leaving = (Move(what=What.INDEX, id=one.id, to=ElementState.ABSENT) for one in over)
    update = {
        "columns": tuple(one for one in draft.whole.columns if one.id != column.id),
        "indexes": tuple(one for one in draft.whole.indexes if one not in over),
    }
    whole = draft.whole.model_copy(update=update)
    return Draft(whole, entered, (*draft.moves, move, *leaving))


def _add_index(draft: Draft, operation: AddIndex) -> Draft:
    entered = draft.entered
    names = [one.name for one in entered.indexes] + [one.name for one in entered.constraints]
    _must_be_free(operation.name, names, "/name", "index")
    if len(entered.indexes) == INDEXES_MAX:
        raise _wrong("/name", f"a table has at most {INDEXES_MAX} indexes")
    columns = tuple(
        _column(draft.whole, name, f"/columns/{place}").id
        for place, name in enumerate(operation.columns)
    )
    if operation.unique:
        _must_hold_partition(entered, columns)
    new = Index(
        id=entered.next_index_id,
        name=operation.name,
        columns=columns,
        unique=operation.unique,
        state=ElementState.ABSENT,
    )
    update = {"indexes": (*entered.indexes, new), "next_index_id": new.id + 1}
    move = Move(what=What.INDEX, id=new.id, to=ElementState.PUBLIC)
    return Draft(draft.whole, entered.model_copy(update=update), (*draft.moves, move))


def _must_hold_partition(info: TableInfo, columns: tuple[int, ...]) -> None:
    """A region knows its own rows alone, so two equal keys must meet in one (PROTOCOLS P6)."""
    names = {column.id: column.name for column in info.columns}
    missing = [names[one] for one in info.partition.columns if one not in columns]
    if missing and info.partition.regions > 1:
        raise Refused("unique-needs-partition-columns", columns=missing)


def _drop_index(draft: Draft, operation: DropIndex) -> Draft:
    index = next((one for one in draft.entered.indexes if one.name == operation.name), None)
    if index is None:
        raise NotFound(what="index", name=operation.name)
    move = Move(what=What.INDEX, id=index.id, to=ElementState.ABSENT)
    return Draft(draft.whole, draft.entered, (*draft.moves, move))


def _drop_not_null(draft: Draft, operation: DropNotNull, here: str) -> Draft:
    column = _settled_column(draft, operation.name, f"{here}/name")
    if column.nullable:
        return draft
    if column.id in draft.entered.primary_key:
        raise _wrong(f"{here}/name", f"column {column.name} is part of the primary key")
    entered = draft.entered
    constraint = Constraint(
        id=entered.next_constraint_id,
        name=f"{column.name}_not_null_{entered.next_constraint_id}",
        kind=ConstraintKind.NOT_NULL,
        columns=(column.id,),
    )
    move = Move(what=What.CONSTRAINT, id=constraint.id, to=ElementState.ABSENT)
    update = {
        "constraints": (*entered.constraints, constraint),
        "next_constraint_id": constraint.id + 1,
    }
    nullable = column.model_copy(update={"nullable": True})
    return Draft(
        whole=_with_changed(draft.whole, nullable),
        entered=entered.model_copy(update=update),
        moves=(*draft.moves, move),
    )


def _may_be_edited(draft: Draft, operation: Edit, here: str) -> None:
    if isinstance(operation, SetDefault):
        _settled_column(draft, operation.name, f"{here}/name")
    if isinstance(operation, RenameColumn):
        moving = {move.id for move in draft.moves if move.what is What.COLUMN}
        names = [one.name for one in draft.entered.columns if one.id in moving]
        _must_be_free(operation.new_name, names, f"{here}/new_name")


def _edited(info: TableInfo, operation: Edit, here: str) -> TableInfo:
    match operation:
        case SetOptions():
            merged = {**info.options, **operation.options}
            kept = {name: value for name, value in merged.items() if value is not None}
            return info.model_copy(update={"options": kept})
        case RenameColumn():
            column = _column(info, operation.name, f"{here}/name")
            others = [one.name for one in info.columns if one.id != column.id]
            _must_be_free(operation.new_name, others, f"{here}/new_name")
            return _with_changed(info, column.model_copy(update={"name": operation.new_name}))
        case SetDefault():
            column = _column(info, operation.name, f"{here}/name")
            if operation.default is not None:
                from_json(parse_type(column.type), operation.default, f"{here}/default")
            return _with_changed(info, column.model_copy(update={"default": operation.default}))
        case _:
            assert_never(operation)


def _column(info: TableInfo, name: str, pointer: str) -> Column:
    for column in info.columns:
        if column.name == name:
            return column
    raise _wrong(pointer, f"column {name} does not exist")


def _settled_column(draft: Draft, name: str, pointer: str) -> Column:
    """One that the table has, and that nothing else in this alter moves."""
    column = _column(draft.whole, name, pointer)
    if any(move.what is What.COLUMN and move.id == column.id for move in draft.moves):
        raise _wrong(pointer, f"column {name} is new: say all of it where it is added")
    return column


def _must_be_free(name: str, names: list[str], pointer: str, what: str = "column") -> None:
    """Case does not count. A name is taken as long as anything bears it that is not yet gone."""
    holder = next((one for one in names if one.lower() == name.lower()), None)
    if holder is not None:
        raise Conflict("already-exists", what=what, name=holder, pointer=pointer)


def _with_column(info: TableInfo, new: Column, after: int | None) -> TableInfo:
    ids = [column.id for column in info.columns]
    place = len(ids) if after is None else ids.index(after) + 1
    columns = (*info.columns[:place], new, *info.columns[place:])
    return info.model_copy(update={"columns": columns, "next_column_id": new.id + 1})


def _with_changed(info: TableInfo, column: Column) -> TableInfo:
    columns = tuple(column if one.id == column.id else one for one in info.columns)
    return info.model_copy(update={"columns": columns})


def _wrong(pointer: str, reason: str) -> Refused:
    return Refused("invalid-schema-change", pointer=pointer, reason=reason)
