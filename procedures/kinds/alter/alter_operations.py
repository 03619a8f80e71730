"""The operations of one alter, as stored, and what they make of a table. Pure.

What regions and statements must follow are *moves* of elements; the rest are *edits*: names,
defaults and options, which are true at once, for everybody, when the moves are.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias, assert_never

from pydantic import Field

from keys.model.tables import Column, Index, TableInfo
from keys.value import StoredPart
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound, Refused
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import from_json
from metasrv_base.wire.api.tables import COLUMNS_MAX, INDEXES_MAX
from procedures.elements.element_targets import ElementTarget, What
from procedures.kinds.alter.constraint_operations import (
    ConstraintOperation,
    DropConstraintOperation,
    with_constraint_operation,
)
from procedures.kinds.alter.constraint_operations import DropNotNull as DropNotNull
from procedures.kinds.alter.copies_operations import SetCopiesOperation, with_copies_operation
from procedures.kinds.alter.draft import (
    AlterDraft,
    column_named,
    must_be_free,
    must_stay,
    near_name,
    settled_column,
    with_changed,
    with_column,
    wrong,
)
from procedures.kinds.alter.type_operations import AlterTypeOperation, with_type_operation


class SetOptionsOperation(StoredPart):
    """None removes."""

    op: Literal["set_options"] = "set_options"
    options: dict[str, str | None]


class RenameColumnOperation(StoredPart):
    """Renames a column, which keeps its id and its values."""

    op: Literal["rename_column"] = "rename_column"
    name: str
    new_name: str


class AddColumnOperation(StoredPart):
    """Rows there are read as `default`, and so do rows that do not name it."""

    op: Literal["add_column"] = "add_column"
    name: str
    type: str
    nullable: bool = True
    default: Any = None
    """JSON form; None: null. An expression has been evaluated when it was asked for."""
    after: str | None = None
    """Null: behind the last one."""


class DropColumnOperation(StoredPart):
    op: Literal["drop_column"] = "drop_column"
    name: str


class SetDefaultOperation(StoredPart):
    """Sets the default of a column for rows written later; None: null."""

    op: Literal["set_default"] = "set_default"
    name: str
    default: Any


class AddIndex(StoredPart):
    op: Literal["add_index"] = "add_index"
    name: str
    columns: tuple[str, ...]
    unique: bool
    not_valid: bool = False
    """If rows have duplicate values, the index stays write-only instead of being rolled back."""
    if_not_exists: bool = False


class ValidateIndex(StoredPart):
    """Validates an index that stayed write-only."""

    op: Literal["validate_index"] = "validate_index"
    name: str


class DropIndex(StoredPart):
    op: Literal["drop_index"] = "drop_index"
    name: str


Edit: TypeAlias = (
    SetOptionsOperation | SetCopiesOperation | RenameColumnOperation | SetDefaultOperation
)
Operation = Annotated[
    SetOptionsOperation
    | SetCopiesOperation
    | RenameColumnOperation
    | AddColumnOperation
    | DropColumnOperation
    | SetDefaultOperation
    | AlterTypeOperation
    | ConstraintOperation
    | AddIndex
    | ValidateIndex
    | DropIndex,
    Field(discriminator="op"),
]


class NextIds(StoredPart):
    """Ids that the next new element of each kind gets."""

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

    def or_later(self, info: TableInfo) -> "NextIds":
        """The later ones of these and those of *info*: a restore may have raised them since."""
        other = NextIds.of(info)
        return NextIds(
            column=max(self.column, other.column),
            index=max(self.index, other.index),
            constraint=max(self.constraint, other.constraint),
        )

    def on(self, info: TableInfo) -> TableInfo:
        update = {
            "next_column_id": self.column,
            "next_index_id": self.index,
            "next_constraint_id": self.constraint,
        }
        return info.model_copy(update=update)


def drafted(info: TableInfo, operations: tuple[Operation, ...]) -> AlterDraft:
    """Raises Refused or Conflict, with a pointer to the operation that cannot be."""
    draft = AlterDraft(info, info)
    dropped = {
        operation.name for operation in operations if isinstance(operation, DropConstraintOperation)
    }
    for number, operation in enumerate(operations):
        here = f"/operations/{number}"
        match operation:
            case AddColumnOperation():
                draft = _add_column(draft, operation, here)
            case DropColumnOperation():
                draft = _drop_column(draft, operation, here, dropped)
            case AlterTypeOperation():
                draft = with_type_operation(draft, operation, here)
            case AddIndex():
                draft = _add_index(draft, operation)
            case ValidateIndex():
                draft = _validate_index(draft, operation)
            case DropIndex():
                draft = _drop_index(draft, operation)
            case (
                SetOptionsOperation()
                | SetCopiesOperation()
                | RenameColumnOperation()
                | SetDefaultOperation()
            ):
                draft = _with_edit(draft, operation, here)
            case _:
                draft = with_constraint_operation(draft, operation, here)
    if draft.moves and any(map(is_of_copies, operations)):
        raise wrong("/operations", "numbers of copies change in an alter of their own")
    return draft


def is_of_copies(operation: Operation) -> bool:
    return isinstance(operation, SetCopiesOperation)


def edited(info: TableInfo, operations: tuple[Operation, ...]) -> TableInfo:
    """The table with the edits among *operations*."""
    for number, operation in enumerate(operations):
        if isinstance(operation, Edit):
            info = _edited(info, operation, f"/operations/{number}")
    return info


def _add_column(draft: AlterDraft, operation: AddColumnOperation, here: str) -> AlterDraft:
    names = [column.name for column in draft.entered.columns]
    names += [column.name for column in draft.whole.columns]
    must_be_free(operation.name, names, f"{here}/column/name")
    if len(draft.entered.columns) == COLUMNS_MAX:
        raise wrong(here, f"a table has at most {COLUMNS_MAX} columns")
    after = None
    if operation.after is not None:
        after = column_named(draft.whole, operation.after, f"{here}/after").id
    new = Column(
        id=draft.entered.next_column_id,
        name=operation.name,
        type=operation.type,
        nullable=operation.nullable,
        default=operation.default,
        origin_default=operation.default,
        state=ElementState.ABSENT,
    )
    move = ElementTarget(
        what=What.COLUMN, id=new.id, to=ElementState.PUBLIC, was=ElementState.ABSENT
    )
    public = new.model_copy(update={"state": ElementState.PUBLIC})
    return replace(
        draft,
        whole=with_column(draft.whole, public, after),
        entered=with_column(draft.entered, new, after),
        moves=(*draft.moves, move),
    )


def _drop_column(
    draft: AlterDraft, operation: DropColumnOperation, here: str, dropped: Collection[str]
) -> AlterDraft:
    """Drops a column. *dropped* names the constraints that the same alter drops, before it or
    behind it."""
    column = settled_column(draft, operation.name, f"{here}/name")
    entered = draft.entered
    if column.id in entered.primary_key:
        raise wrong(f"{here}/name", f"column {column.name} is part of the primary key")
    if column.id in draft.edits:
        raise wrong(f"{here}/name", f"column {column.name} is edited too: drop it alone")
    over_it = [
        constraint.name for constraint in entered.constraints if column.id in constraint.columns
    ]
    for held in over_it:
        if held not in dropped:
            raise wrong(f"{here}/name", f"{held} is over column {column.name}: drop it too")
    has_nothing = column.default is None and column.origin_default is None
    move = ElementTarget(
        what=What.COLUMN,
        id=column.id,
        to=ElementState.ABSENT,
        generated=has_nothing and not column.nullable,
        behind=bool(over_it),
    )
    over = [
        index
        for index in entered.indexes
        if column.id in index.columns and not draft.drops_index(index.id)
    ]
    for index in over:
        if draft.moves_index(index.id):
            text = f"this alter adds index {index.name} over column {column.name}"
            raise wrong(f"{here}/name", text)
    leaving = (
        ElementTarget(what=What.INDEX, id=index.id, to=ElementState.ABSENT, was=index.state)
        for index in over
    )
    update = {
        "columns": tuple(other for other in draft.whole.columns if other.id != column.id),
        "indexes": tuple(index for index in draft.whole.indexes if index not in over),
    }
    whole = draft.whole.model_copy(update=update)
    return replace(draft, whole=whole, moves=(*draft.moves, move, *leaving))


def _add_index(draft: AlterDraft, operation: AddIndex) -> AlterDraft:
    entered = draft.entered
    if operation.if_not_exists and stands(entered, operation):
        return draft
    names = [element.name for element in entered.indexes] + [
        element.name for element in entered.constraints
    ]
    must_be_free(operation.name, names, "/name", "index")
    if len(entered.indexes) == INDEXES_MAX:
        raise wrong("/name", f"a table has at most {INDEXES_MAX} indexes")
    columns = tuple(
        column_named(draft.whole, name, f"/columns/{position}").id
        for position, name in enumerate(operation.columns)
    )
    must_stay(draft, columns, "/columns", "index")
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
    move = ElementTarget(
        what=What.INDEX, id=new.id, to=ElementState.PUBLIC, was=ElementState.ABSENT
    )
    entered = entered.model_copy(update=update)
    return replace(draft, entered=entered, moves=(*draft.moves, move))


def stands(info: TableInfo, operation: AddIndex) -> bool:
    """Whether the table has that very index, and it is public."""
    names = {column.id: column.name for column in info.columns}
    index = next((index for index in info.indexes if index.name == operation.name), None)
    if index is None or index.state is not ElementState.PUBLIC:
        return False
    columns = tuple(names[column] for column in index.columns)
    return (columns, index.unique) == (operation.columns, operation.unique)


def _must_hold_partition(info: TableInfo, columns: tuple[int, ...]) -> None:
    """A region knows its own rows alone, so two equal keys must meet in one (P6)."""
    names = {column.id: column.name for column in info.columns}
    missing = [names[column] for column in info.partition.columns if column not in columns]
    if missing and info.partition.regions > 1:
        raise Refused("unique-needs-partition-columns", columns=missing)


def _validate_index(draft: AlterDraft, operation: ValidateIndex) -> AlterDraft:
    """Adds a move of the index to public, unless it is public already."""
    index = _index(draft, operation.name)
    if index.state is ElementState.PUBLIC:
        return draft
    move = ElementTarget(what=What.INDEX, id=index.id, to=ElementState.PUBLIC, was=index.state)
    return replace(draft, moves=(*draft.moves, move))


def _drop_index(draft: AlterDraft, operation: DropIndex) -> AlterDraft:
    index = _index(draft, operation.name)
    move = ElementTarget(what=What.INDEX, id=index.id, to=ElementState.ABSENT, was=index.state)
    return replace(draft, moves=(*draft.moves, move))


def _index(draft: AlterDraft, name: str) -> Index:
    """Returns the index *name* of the table. Raises NotFound, also if this alter changes it."""
    for index in draft.entered.indexes:
        if index.name == name and not draft.moves_index(index.id):
            return index
    close = near_name(name, [index.name for index in draft.entered.indexes])
    raise NotFound(what="index", name=name, **close)


def _with_edit(draft: AlterDraft, operation: Edit, here: str) -> AlterDraft:
    edits = draft.edits
    if isinstance(operation, SetDefaultOperation):
        edits |= {settled_column(draft, operation.name, f"{here}/name").id}
    if isinstance(operation, RenameColumnOperation):
        moving = {move.id for move in draft.moves if move.what is What.COLUMN}
        names = [column.name for column in draft.entered.columns if column.id in moving]
        must_be_free(operation.new_name, names, f"{here}/new_name")
        column = column_named(draft.whole, operation.name, f"{here}/name")
        if column.replaces is not None:
            raise wrong(f"{here}/name", f"the type of {operation.name} changes: rename it then")
        edits |= {column.id}
    return replace(draft, whole=_edited(draft.whole, operation, here), edits=edits)


def _edited(info: TableInfo, operation: Edit, here: str) -> TableInfo:
    match operation:
        case SetOptionsOperation():
            merged = {**info.options, **operation.options}
            kept = {name: value for name, value in merged.items() if value is not None}
            return info.model_copy(update={"options": kept})
        case SetCopiesOperation():
            return with_copies_operation(info, operation, here)
        case RenameColumnOperation():
            column = column_named(info, operation.name, f"{here}/name")
            others = [other.name for other in info.columns if other.id != column.id]
            must_be_free(operation.new_name, others, f"{here}/new_name")
            return with_changed(info, column.model_copy(update={"name": operation.new_name}))
        case SetDefaultOperation():
            column = column_named(info, operation.name, f"{here}/name")
            if operation.default is not None:
                from_json(parse_type(column.type), operation.default, f"{here}/default")
            return with_changed(info, column.model_copy(update={"default": operation.default}))
        case _:
            assert_never(operation)
