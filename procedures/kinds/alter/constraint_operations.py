"""The operations of an alter that say what rows must satisfy, and what they make of a table. Pure.

That a column is never null is a constraint only on its way; then the column says so itself.
"""

from dataclasses import replace
from typing import Literal, TypeAlias

from keys.model.tables import Constraint, ConstraintKind, TableInfo
from keys.value import StoredPart
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound
from metasrv_base.expressions.check import asked
from metasrv_base.expressions.text import stored_columns
from metasrv_base.schema.types import parse_type
from procedures.elements.element_targets import ElementTarget, What
from procedures.kinds.alter.draft import (
    AlterDraft,
    must_be_free,
    must_stay,
    near_name,
    settled_column,
    with_changed,
    with_constraint,
    wrong,
)

CONSTRAINTS_MAX = 64


class SetNotNull(StoredPart):
    op: Literal["set_not_null"] = "set_not_null"
    name: str
    constraint: str | None = None
    """Name of the constraint while it is being added; None: derived from the column."""
    not_valid: bool = False
    """Rows that are there are not looked at."""


class DropNotNull(StoredPart):
    op: Literal["drop_not_null"] = "drop_not_null"
    name: str


class AddCheck(StoredPart):
    op: Literal["add_check"] = "add_check"
    name: str
    expression: str
    """Expression as the client wrote it, with columns by name."""
    not_valid: bool = False


class ValidateConstraintOperation(StoredPart):
    """Validates a constraint that was added without a check of the rows."""

    op: Literal["validate_constraint"] = "validate_constraint"
    name: str


class DropConstraintOperation(StoredPart):
    op: Literal["drop_constraint"] = "drop_constraint"
    name: str


ConstraintOperation: TypeAlias = (
    SetNotNull | DropNotNull | AddCheck | ValidateConstraintOperation | DropConstraintOperation
)


def with_constraint_operation(
    draft: AlterDraft, operation: ConstraintOperation, here: str
) -> AlterDraft:
    """Raises Refused or Conflict with a pointer from *here*."""
    match operation:
        case SetNotNull():
            return _set_not_null(draft, operation, here)
        case DropNotNull():
            return _drop_not_null(draft, operation, here)
        case AddCheck():
            return _add_check(draft, operation, here)
        case ValidateConstraintOperation():
            return _validate(draft, operation, here)
        case DropConstraintOperation():
            return _drop_constraint(draft, operation, here)


def _set_not_null(draft: AlterDraft, operation: SetNotNull, here: str) -> AlterDraft:
    column = settled_column(draft, operation.name, f"{here}/name")
    if not column.nullable:
        return draft
    constraint = _not_null_of(column.id, draft.entered)
    if constraint is not None:
        raise wrong(f"{here}/name", f"constraint {constraint.name} forbids null already")
    new = Constraint(
        id=draft.entered.next_constraint_id,
        name=operation.constraint or _name(column.name, draft.entered),
        kind=ConstraintKind.NOT_NULL,
        columns=(column.id,),
        holds=False,
        state=ElementState.ABSENT,
    )
    coming = _coming(draft, new, operation.not_valid, here)
    if operation.not_valid:
        return coming
    required = column.model_copy(update={"nullable": False})
    return replace(coming, whole=with_changed(coming.whole, required))


def _not_null_of(column_id: int, info: TableInfo) -> Constraint | None:
    """Returns the constraint that is on its way in or out, or was added as not valid."""
    of_column = (each for each in info.constraints if column_id in each.columns)
    return next((each for each in of_column if each.kind is ConstraintKind.NOT_NULL), None)


def _drop_not_null(draft: AlterDraft, operation: DropNotNull, here: str) -> AlterDraft:
    column = settled_column(draft, operation.name, f"{here}/name")
    if column.nullable:
        return draft
    if column.id in draft.entered.primary_key:
        raise wrong(f"{here}/name", f"column {column.name} is part of the primary key")
    if _not_null_of(column.id, draft.entered) is not None:
        raise wrong(f"{here}/name", f"column {column.name} is set not null too: leave it out")
    constraint = Constraint(
        id=draft.entered.next_constraint_id,
        name=_name(column.name, draft.entered),
        kind=ConstraintKind.NOT_NULL,
        columns=(column.id,),
    )
    move = ElementTarget(what=What.CONSTRAINT, id=constraint.id, to=ElementState.ABSENT)
    nullable = column.model_copy(update={"nullable": True})
    return replace(
        draft,
        whole=with_changed(draft.whole, nullable),
        entered=with_constraint(draft.entered, constraint),
        moves=(*draft.moves, move),
    )


def _add_check(draft: AlterDraft, operation: AddCheck, here: str) -> AlterDraft:
    names = {column.name: column.id for column in draft.whole.columns}
    types = {column.id: parse_type(column.type) for column in draft.whole.columns}
    expression = asked(operation.expression, names, types, f"{here}/check")
    columns = stored_columns(expression)
    must_stay(draft, columns, f"{here}/check", "check")
    new = Constraint(
        id=draft.entered.next_constraint_id,
        name=operation.name,
        kind=ConstraintKind.CHECK,
        columns=columns,
        expression=expression,
        holds=False,
        state=ElementState.ABSENT,
    )
    return _coming(draft, new, operation.not_valid, here)


def _coming(draft: AlterDraft, new: Constraint, not_valid: bool, here: str) -> AlterDraft:
    info = draft.entered
    names = [element.name for element in info.indexes] + [
        element.name for element in info.constraints
    ]
    must_be_free(new.name, names, f"{here}/name", "constraint")
    if len(info.constraints) >= CONSTRAINTS_MAX:
        raise wrong(here, f"a table has at most {CONSTRAINTS_MAX} constraints")
    to = ElementState.WRITE_ONLY if not_valid else ElementState.PUBLIC
    move = ElementTarget(what=What.CONSTRAINT, id=new.id, to=to, was=ElementState.ABSENT)
    return replace(draft, entered=with_constraint(info, new), moves=(*draft.moves, move))


def _validate(draft: AlterDraft, operation: ValidateConstraintOperation, here: str) -> AlterDraft:
    constraint = _constraint(draft, operation.name)
    if constraint.holds:
        return draft
    move = ElementTarget(
        what=What.CONSTRAINT, id=constraint.id, to=ElementState.PUBLIC, was=constraint.state
    )
    return replace(draft, moves=(*draft.moves, move))


def _drop_constraint(
    draft: AlterDraft, operation: DropConstraintOperation, here: str
) -> AlterDraft:
    constraint = _constraint(draft, operation.name)
    move = ElementTarget(
        what=What.CONSTRAINT, id=constraint.id, to=ElementState.ABSENT, was=constraint.state
    )
    return replace(draft, moves=(*draft.moves, move))


def _constraint(draft: AlterDraft, name: str) -> Constraint:
    """Returns the constraint *name* of the table. Raises NotFound, also if this alter changes
    it."""
    for constraint in draft.entered.constraints:
        moved = any(
            move.what is What.CONSTRAINT and move.id == constraint.id for move in draft.moves
        )
        if constraint.name == name and not moved:
            return constraint
    close = near_name(name, [constraint.name for constraint in draft.entered.constraints])
    raise NotFound(what="constraint", name=name, **close)


def _name(column: str, info: TableInfo) -> str:
    return f"{column}_not_null_{info.next_constraint_id}"
