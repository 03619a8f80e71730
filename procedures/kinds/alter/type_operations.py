"""The operation of an alter that gives a column another type, and what it makes of a table. Pure.

A new column comes in the place of the old one, which goes in the same transaction: two moves.
"""

from dataclasses import replace
from typing import Literal

from keys.model.tables import Column, OriginColumnRecord, TableInfo
from keys.value import StoredPart
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Refused
from metasrv_base.schema.conversion import Conversion, conversion_of
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import from_json, to_json
from metasrv_base.wire.api.tables import COLUMNS_MAX
from procedures.elements.element_targets import ElementTarget, What
from procedures.kinds.alter.draft import (
    AlterDraft,
    settled_column,
    with_changed,
    with_column,
    wrong,
)

ORIGINS_MAX = 16
"""Most earlier types of a column. A row of any of them costs a conversion for each later type,
at each read until a compaction."""


class AlterTypeOperation(StoredPart):
    op: Literal["alter_type"] = "alter_type"
    name: str
    type: str


def with_type_operation(draft: AlterDraft, operation: AlterTypeOperation, here: str) -> AlterDraft:
    """Raises Refused with a pointer from *here*."""
    old = settled_column(draft, operation.name, f"{here}/name")
    _may_change(draft, old, f"{here}/name")
    conversion = _conversion(old, operation.type, f"{here}/type")
    if len(draft.entered.columns) == COLUMNS_MAX:
        raise wrong(here, f"a table has at most {COLUMNS_MAX} columns, for a while the old one too")
    new = _replacing(old, conversion, draft.entered.next_column_id, f"{here}/type")
    leaving = old.model_copy(update={"replaced_by": new.id})
    comes = ElementTarget(
        what=What.COLUMN,
        id=new.id,
        to=ElementState.PUBLIC,
        was=ElementState.ABSENT,
        lossy=not conversion.is_lossless,
    )
    goes = ElementTarget(what=What.COLUMN, id=old.id, to=ElementState.ABSENT)
    return replace(
        draft,
        whole=_exchanged(draft.whole, old, new),
        entered=with_column(with_changed(draft.entered, leaving), new, old.id),
        moves=(*draft.moves, comes, goes),
    )


def _may_change(draft: AlterDraft, column: Column, pointer: str) -> None:
    entered, name = draft.entered, column.name
    if column.id in entered.primary_key:
        raise wrong(pointer, f"column {name} is part of the primary key, whose type stays")
    if column not in entered.columns or column.id in draft.edits:
        raise wrong(pointer, f"something else of column {name} changes too: alter its type alone")
    if len(column.origin_columns) == ORIGINS_MAX:
        reason = f"column {name} has had {ORIGINS_MAX} other types: add another column in its place"
        raise wrong(pointer, f"{reason}, write its values there, and drop it")
    over = ((What.INDEX, entered.indexes), (What.CONSTRAINT, entered.constraints))
    going = {(move.what, move.id) for move in draft.moves if not move.adds}
    for what, elements in over:
        for element in elements:
            if column.id in element.columns and (what, element.id) not in going:
                reason = (
                    f"{what} {element.name} is over column {name}; drop it first, add it again then"
                )
                raise wrong(pointer, reason)


def _conversion(column: Column, type: str, pointer: str) -> Conversion:
    source, target = parse_type(column.type), parse_type(type, pointer)
    if source == target:
        raise wrong(pointer, f"column {column.name} is {type} already")
    try:
        return conversion_of(source, target)
    except Refused as error:
        reason = f"values of {column.type} cannot be converted to {type}: add another column"
        raise wrong(pointer, reason) from error


def _replacing(old: Column, conversion: Conversion, id: int, pointer: str) -> Column:
    try:
        default = _converted(conversion, old.default)
    except Refused as error:
        reason = (
            f"the default {old.default!r} is no {conversion.target.text}: set another one first"
        )
        raise wrong(pointer, reason) from error
    try:
        origin = _converted(conversion, old.origin_default)
    except Refused:
        origin = None  # a row that reads as it is found by the look at the rows
    return old.model_copy(
        update={
            "id": id,
            "type": conversion.target.text,
            "default": default,
            "origin_default": origin,
            "origin_columns": (OriginColumnRecord(id=old.id, type=old.type), *old.origin_columns),
            "replaces": old.id,
            "state": ElementState.ABSENT,
        }
    )


def _converted(conversion: Conversion, value: object) -> object:
    """Returns *value* converted, in JSON form."""
    if value is None:
        return None
    converted = conversion.of_value(from_json(conversion.source, value))
    return to_json(conversion.target, converted)


def _exchanged(info: TableInfo, old: Column, new: Column) -> TableInfo:
    """Returns the table as users will see it."""
    public = new.model_copy(update={"state": ElementState.PUBLIC})
    columns = tuple(public if column.id == old.id else column for column in info.columns)
    return info.model_copy(update={"columns": columns, "next_column_id": new.id + 1})
